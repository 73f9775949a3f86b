"""The tools that MCP's conformance suite calls by name, as ordinary tools of a cluster."""

import asyncio
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, WithJsonSchema

from beckon_contract.inputs import InputAnswer
from beckon_tools import Hints, Media, Person, Progress, ToolError, tool
from beckon_tools.declaration import AnyTool
from tests.agent.event_platform import described
from tests.broker.broker_process import Manifest

_PICTURE = Media("image/png", b"\x89PNG")
_DIALECT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@tool(type="test.simple.text")
async def simple_text() -> str:
    """Return text."""
    return "This is a simple text response for testing."


@tool(type="test.image.content")
async def image_content() -> Media:
    """Return a picture."""
    return _PICTURE


@tool(type="test.audio.content")
async def audio_content() -> Media:
    """Return a sound."""
    return Media("audio/wav", b"RIFF")


@tool(type="test.embedded.resource")
async def embedded_resource() -> Media:
    """Return a document."""
    return Media("application/pdf", b"%PDF")


@tool(type="test.multiple.content.types")
async def multiple_content_types() -> list[Any]:
    """Return several kinds of content."""
    return [
        "Multiple content types test:",
        _PICTURE.to_document(),
        Media("application/pdf", b"%PDF").to_document(),
    ]


@tool(type="test.error.handling")
async def error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(type="test.tool.with.progress")
async def tool_with_progress(progress: Progress) -> str:
    """Take a while, and report it."""
    for done in (0, 50, 100):
        await progress.report(done, 100)
        await asyncio.sleep(0.05)
    return "done"


@tool(type="test.region")
async def region(name: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument by which a gateway routes."""
    return name


@tool(type="greet")
async def greet(name: str) -> str:
    """Greet a person."""
    return f"Hello, {name}!"


@tool(type="slow.compute", hints=Hints(timeout=120))
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take some seconds."""
    await asyncio.sleep(seconds)
    return f"done: {label}"


@tool(type="failing.job", hints=Hints(timeout=120))
async def failing_job() -> str:
    """Fail after a moment."""
    await asyncio.sleep(0.2)
    raise ToolError("it failed, as it should")


@tool(type="confirm.delete", hints=Hints(timeout=120, requires_approval=True))
async def confirm_delete(filename: str) -> str:
    """Delete a file, after a person's approval."""
    return f"{filename} is deleted"


def _sampling(text: str) -> dict[str, Any]:
    message = {"role": "user", "content": {"type": "text", "text": text}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


def _form(message: str, name: str, kind: str = "string") -> dict[str, Any]:
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


_ROOTS = {"method": "roots/list", "params": {}}


def _said(answer: InputAnswer) -> str:
    return str((answer.content or {})["content"]["text"])


@tool(type="test.missing.capability")
async def completion_of_client(person: Person) -> str:
    """Request a completion of the client's model."""
    return _said(person.request_inputs({"completion": _sampling("Hello")})["completion"])


@tool(type="test.streaming.elicitation")
async def streamed_form(person: Person) -> str:
    """Request a confirmation."""
    return str(person.request_input("Sure?", {"type": "object", "properties": {}}).action)


@tool(type="test.logging.tool")
async def logging_tool(progress: Progress) -> str:
    """Report what it does."""
    await progress.report(1, 1, "it works")
    return "done"


@tool(type="test.tool.with.logging")
async def tool_with_logging(progress: Progress) -> str:
    """Report three steps."""
    for done, step in enumerate(("started", "processing data", "completed"), 1):
        await progress.report(done, 3, f"Tool execution {step}")
        await asyncio.sleep(0.05)
    return "done"


CHANGES: list[Callable[[], None]] = []
"""What changes the tools of the service that runs."""


@tool(type="test.trigger.tool.change")
async def trigger_tool_change() -> str:
    """Change the list of tools."""
    CHANGES[-1]()
    return "changed"


TOOLS: list[AnyTool] = [
    trigger_tool_change,
    completion_of_client,
    streamed_form,
    logging_tool,
    tool_with_logging,
    simple_text,
    image_content,
    audio_content,
    embedded_resource,
    multiple_content_types,
    error_handling,
    tool_with_progress,
    region,
]


class Named(BaseModel):
    """A form with a name."""

    name: str


class Coloured(BaseModel):
    """A form with a colour."""

    color: str


class Confirmed(BaseModel):
    """A form with a confirmation."""

    ok: bool


class Account(BaseModel):
    """A form with two texts."""

    username: str = Field(description="User's response")
    email: str = Field(description="User's email address")


class WithDefaults(BaseModel):
    """A form with a default of each kind (SEP-1034)."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def _choices(*values: str) -> list[dict[str, str]]:
    return [{"const": value, "title": f"Title of {value}"} for value in values]


class WithChoices(BaseModel):
    """A form with a choice of each kind (SEP-1330)."""

    untitledSingle: Literal["option1", "option2", "option3"]  # noqa: N815  # the suite's names
    titledSingle: Annotated[  # noqa: N815  # as above
        str, WithJsonSchema({"type": "string", "oneOf": _choices("value1", "value2", "value3")})
    ]
    legacyEnum: Annotated[  # noqa: N815  # as above
        str,
        WithJsonSchema(
            {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            }
        ),
    ]
    untitledMulti: list[Literal["option1", "option2", "option3"]]  # noqa: N815  # as above
    titledMulti: Annotated[  # noqa: N815  # as above
        list[str],
        WithJsonSchema({"type": "array", "items": {"anyOf": _choices("value1", "value2", "value3")}}),
    ]


@tool(type="test.elicitation")
async def account_form(message: str, person: Person) -> str:
    """Request a name and an address."""
    return f"User response: {person.fill_form(message, Account).username}"


@tool(type="test.elicitation.sep1034.defaults")
async def form_with_defaults(person: Person) -> str:
    """Request fields with defaults."""
    return f"Elicitation completed: {person.fill_form('Please check', WithDefaults).model_dump_json()}"


@tool(type="test.elicitation.sep1330.enums")
async def form_with_choices(person: Person) -> str:
    """Request choices."""
    return f"Elicitation completed: {person.fill_form('Please choose', WithChoices).model_dump_json()}"


@tool(type="test.input.required.result.elicitation")
async def name_form(person: Person) -> str:
    """Greet the person behind the call."""
    return f"Hello, {person.fill_form('What is your name?', Named, key='user_name').name}!"


@tool(type="test.input.required.result.request.state")
async def state_form(person: Person) -> str:
    """Request one confirmation."""
    return "state-ok" if person.fill_form("Please confirm", Confirmed).ok else "not confirmed"


@tool(type="test.input.required.result.tampered.state")
async def tampered_form(person: Person) -> str:
    """Request one confirmation, whose state the client changes."""
    return "confirmed" if person.fill_form("Please confirm", Confirmed).ok else "not confirmed"


@tool(type="test.input.required.result.multi.round")
async def two_forms(person: Person) -> str:
    """Request input twice."""
    name = person.fill_form("Step 1: What is your name?", Named, key="step1").name
    colour = person.fill_form("Step 2: What is your favorite color?", Coloured, key="step2").color
    return f"{name} likes {colour}"


@tool(type="test.sampling")
async def sampling(prompt: str, person: Person) -> str:
    """Request a completion of the client's model."""
    return f"LLM response: {_said(person.request_inputs({'answer': _sampling(prompt)})['answer'])}"


@tool(type="test.input.required.result.sampling")
async def capital(person: Person) -> str:
    """Request a completion of the client's model."""
    question = _sampling("What is the capital of France?")
    return _said(person.request_inputs({"capital_question": question})["capital_question"])


@tool(type="test.input.required.result.list.roots")
async def folders(person: Person) -> str:
    """Request the folders of the client."""
    return str(person.request_inputs({"client_roots": _ROOTS})["client_roots"].content)


@tool(type="test.input.required.result.multiple.inputs")
async def several_inputs(person: Person) -> str:
    """Request a name, a completion and the folders."""
    answers = person.request_inputs(
        {
            "user_name": _form("What is your name?", "name"),
            "greeting": _sampling("Generate a greeting"),
            "client_roots": _ROOTS,
        }
    )
    return f"{_said(answers['greeting'])} {answers['user_name'].content} {answers['client_roots'].content}"


@tool(type="test.input.required.result.capabilities")
async def either_input(person: Person) -> str:
    """Request what the client can give."""
    requests = {"name": _form("What is your name?", "name"), "guess": _sampling("Guess a name")}
    return ", ".join(person.request_inputs(requests))


@tool(type="multi.input", hints=Hints(timeout=120))
async def two_forms_at_once(person: Person) -> str:
    """Request two confirmations at once."""
    answers = person.request_inputs(
        {"first": _form("First?", "confirm", "boolean"), "second": _form("Second?", "confirm", "boolean")}
    )
    return " ".join(answer.action for answer in answers.values())


TASK_TOOLS: list[AnyTool] = [
    sampling,
    capital,
    folders,
    several_inputs,
    either_input,
    two_forms_at_once,
    account_form,
    form_with_defaults,
    form_with_choices,
    greet,
    slow_compute,
    failing_job,
    confirm_delete,
    name_form,
    state_form,
    tampered_form,
    two_forms,
]
"""Those of the scenarios of tasks and of input, some of which take a minute where there are no tasks."""


def by_hand(service: str) -> list[Manifest]:
    """Return the EventType that says more than a function can; no one calls it, whatever `service` is."""
    return described("json-schema-2020-12-tool", service, parameters=json.dumps(_DIALECT))
