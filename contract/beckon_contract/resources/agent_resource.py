"""`Agent` resources: agents written as Kubernetes objects, and their tools."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from beckon_contract.fields import Fields, InvalidFields, ReportProblem
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.resources.agent_terms import NO_TERMS, Terms, read_terms
from beckon_contract.resources.tools import API_VERSION, GROUP, ToolSelector, read_tool_selector
from beckon_contract.schema.arguments import Validator

TextCalls = Literal["never", "own", "any"]
"""Which calls are recovered that leaked into the text of an answer: none, by the model's family, of any."""

KIND = "Agent"
PLURAL = "agents"
DEFAULT_KEY = "api-key"

_SPEC = (
    "systemPrompt",
    "publishPrompt",
    "model",
    "textCalls",
    "outputSchema",
    "tools",
    "limits",
    "access",
    "toolPolicies",
    "quotas",
)
_MODEL = ("baseURL", "name", "dialect", "apiKeySecret")
_TEXT_CALLS: Final[tuple[TextCalls, ...]] = ("never", "own", "any")
_SECRET = ("name", "key")
_LIMITS = (
    "steps",
    "seconds",
    "tokens",
    "parallelCalls",
    "callTimeoutSeconds",
    "resultCharacters",
    "tools",
    "callsPerTurn",
    "repeatedCalls",
)
_PINNED = "pinned"

# Both become part of requests to the API server: RFC 1123 subdomain, and a key as Secrets have them.
_SECRET_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_SECRET_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


class InvalidAgent(InvalidFields):
    """An Agent has mistakes; `problems` names their fields."""


@dataclass(frozen=True, slots=True)
class SecretKey:
    """One entry of a Secret in the Agent's namespace."""

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class ModelReference:
    """The model used by an agent.

    Without a `base_url`, the server is the agent service's own, and so is every other field that is `None`.
    """

    base_url: str | None = None
    name: str | None = None
    dialect: str | None = None
    api_key: SecretKey | None = None


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The limits of one run, with times in seconds.

    `None` means the limit of the agent service.

    `tools` limits the tools in one request to the model, `calls_per_turn` the calls in one answer of the
    model, and `repeated_calls` how often in a row the same call may bring nothing new.
    """

    steps: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    parallel_calls: int | None = None
    call_timeout: float | None = None
    result_chars: int | None = None
    tools: int | None = None
    calls_per_turn: int | None = None
    repeated_calls: int | None = None


@dataclass(frozen=True, slots=True)
class AgentResource:
    """One Agent as it was written.

    `pinned` are names of EventTypes, or of tools as models see them, that the model is always sent; `None`
    means the setting of the agent service. `text_calls` says which calls are recovered from the text of an
    answer. `output_schema` is the JSON Schema of the agent's answers, `None` for plain text. With
    `publish_prompt`, MCP clients may read the system prompt.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    system_prompt: str | None
    model: ModelReference
    tools: ToolSelector
    limits: AgentLimits
    terms: Terms = NO_TERMS
    pinned: tuple[str, ...] | None = None
    text_calls: TextCalls | None = None
    output_schema: Mapping[str, object] | None = None
    publish_prompt: bool = False


def is_agent(resource: Resource) -> bool:
    """Return True if an object is an Agent of Beckon."""
    return resource.group == GROUP and resource.kind == KIND


def read_agent(resource: Resource) -> AgentResource:
    """Read an Agent; raise `InvalidAgent` with all its mistakes.

    These are the mistakes that the CRD's schema let pass.
    """
    report = ReportProblem()
    if resource.api_version != API_VERSION or resource.kind != KIND:
        Fields({}, "", report).problem("apiVersion", f"must be {API_VERSION} with kind {KIND}")
    spec = Fields(resource.spec, "spec", report)
    spec.refuse_unknown(_SPEC)
    tools = spec.child("tools")
    agent = AgentResource(
        namespace=resource.namespace,
        name=resource.name,
        uid=resource.uid,
        generation=resource.generation,
        system_prompt=spec.text("systemPrompt"),
        model=_model(spec.child("model")),
        tools=read_tool_selector(tools, (_PINNED,)),
        limits=_limits(spec.child("limits")),
        terms=read_terms(spec),
        text_calls=_text_calls(spec),
        output_schema=_output_schema(spec),
        publish_prompt=bool(spec.boolean("publishPrompt")),
        pinned=None if tools is None or tools.values.get(_PINNED) is None else tools.strings(_PINNED),
    )
    if report.problems:
        raise InvalidAgent(report.problems)
    return agent


def _text_calls(spec: Fields) -> TextCalls | None:
    written = spec.text("textCalls")
    for known in _TEXT_CALLS:
        if written == known:
            return known
    if written is not None:
        spec.problem("textCalls", f"must be one of {', '.join(_TEXT_CALLS)}")
    return None


def _output_schema(spec: Fields) -> Mapping[str, object] | None:
    schema = spec.child("outputSchema")
    if schema is None:
        return None
    try:
        Validator(schema.values)
    except ValueError as error:
        spec.problem("outputSchema", f"is no JSON Schema (2020-12): {str(error)[:200]}")
    return schema.values


def _model(fields: Fields | None) -> ModelReference:
    if fields is None:
        return ModelReference()
    fields.refuse_unknown(_MODEL)
    reference = ModelReference(
        base_url=fields.text("baseURL"),
        name=fields.text("name"),
        dialect=fields.text("dialect"),
        api_key=_secret(fields.child("apiKeySecret")),
    )
    if reference.api_key is not None and reference.base_url is None:
        # Otherwise the key would go to a server that its owner has not named.
        fields.problem("apiKeySecret", "needs baseURL, since the key belongs to that server")
    return reference


def _secret(fields: Fields | None) -> SecretKey | None:
    if fields is None:
        return None
    fields.refuse_unknown(_SECRET)
    name, key = fields.text("name") or "", fields.text("key") or DEFAULT_KEY
    if not _SECRET_NAME.fullmatch(name):
        fields.problem("name", "write the name of a Secret: lower-case letters, digits, '-' and '.'")
    if not _SECRET_KEY.fullmatch(key):
        fields.problem("key", "write a key of that Secret: letters, digits, '-', '_' and '.'")
    return SecretKey(name, key)


def _limits(fields: Fields | None) -> AgentLimits:
    if fields is None:
        return AgentLimits()
    fields.refuse_unknown(_LIMITS)
    return AgentLimits(
        steps=fields.positive("steps"),
        seconds=fields.positive("seconds"),
        tokens=fields.positive("tokens"),
        parallel_calls=fields.positive("parallelCalls"),
        call_timeout=fields.positive("callTimeoutSeconds"),
        result_chars=fields.positive("resultCharacters"),
        tools=fields.positive("tools"),
        calls_per_turn=fields.positive("callsPerTurn"),
        repeated_calls=fields.positive("repeatedCalls"),
    )
