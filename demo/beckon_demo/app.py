"""The demo model over HTTP: `/v1/chat/completions`, `/v1/models` and `/healthz`."""

import hashlib
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, cast

from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from beckon_demo.conversation import read_conversation
from beckon_demo.reply import Call, Reply, Rules, reply, to_json_answer

MODELS: Final = ("demo", "demo-no-tools", "demo-prompted", "demo-chatglm3")
"""`demo` takes tools; the others refuse them, as a server without a tool parser does, and read prompts."""

_ROLES: Final = ("system", "developer", "user", "assistant", "tool")
_NO_TOOLS: Final = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
_TOKEN: Final = re.compile(r"\w+|[^\w\s]")

Json = dict[str, Any]


class BadRequest(HTTPException):
    """A request that is refused with OpenAI's error object."""

    def __init__(self, message: str, *, param: str | None = None, status: int = 400, code: str | None = None):
        super().__init__(status, message)
        self.param, self.code = param, code


class _Function(BaseModel):
    name: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
    description: str = ""
    parameters: Json = {}


class _FunctionTool(BaseModel):
    type: Literal["function"]
    function: _Function


class _ChatRequest(BaseModel):
    """The fields that the demo model knows; it passes over all others."""

    model: str
    messages: Annotated[list[Json], Field(min_length=1, max_length=10_000)]
    tools: list[_FunctionTool] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    response_format: Json | None = None
    stream: bool | None = None
    stream_options: Json | None = None

    @property
    def rules(self) -> Rules:
        """The meaning of `tool_choice` and `parallel_tool_calls`."""
        parallel, allowed = self.parallel_tool_calls is not False, None
        match self.tool_choice:
            case {"type": "function", "function": {"name": str(name)}}:
                return Rules(required=True, allowed=frozenset([name]), parallel=parallel)
            case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [*tools]}}:
                allowed = frozenset(name for tool in tools for name in _names_of(tool))
            case mode:
                pass
        if mode not in (None, "none", "auto", "required"):
            raise BadRequest(
                "tool_choice: send none, auto, required, a function or allowed_tools", param="tool_choice"
            )
        return Rules(calls=mode != "none", required=mode == "required", allowed=allowed, parallel=parallel)


def _names_of(tool: object) -> Iterator[str]:
    match tool:
        case {"function": {"name": str(name)}}:
            yield name


def build_app(chunk_characters: int = 4, max_request_bytes: int = 16_000_000) -> Starlette:
    """Return the application, which streams in chunks of that many characters; errors have OpenAI's form."""

    async def complete(request: Request) -> Response:
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > max_request_bytes:
                raise BadRequest(f"the request is larger than {max_request_bytes} bytes", status=413)
        return _answer(_read_request(body), chunk_characters)

    async def list_models(_: Request) -> JSONResponse:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "beckon-demo"} for name in MODELS]
        return JSONResponse({"object": "list", "data": listed})

    async def check_health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    app = Starlette(exception_handlers={HTTPException: _refuse})
    app.add_route("/healthz", check_health, methods=["GET"])
    app.add_route("/v1/models", list_models, methods=["GET"])
    app.add_route("/v1/chat/completions", complete, methods=["POST"])
    return app


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    refusal = cast("HTTPException", error)
    if not isinstance(refusal, BadRequest):
        message = f"{request.method} {request.url.path}: {refusal.detail}"
        refusal = BadRequest(message, status=refusal.status_code)
    kind = "not_found_error" if refusal.status_code == 404 else "invalid_request_error"
    body = {"message": refusal.detail, "type": kind, "param": refusal.param, "code": refusal.code}
    return JSONResponse({"error": body}, refusal.status_code)


def _read_request(body: bytes) -> _ChatRequest:
    """Parse and check a request as strictly as a strict provider; raise BadRequest with the error's place."""
    try:
        request = _ChatRequest.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        raise BadRequest(f"{where or 'the body'}: {first['msg']}", param=where or None) from None
    if request.model not in MODELS:
        message = f"The model `{request.model}` does not exist; there are {', '.join(MODELS)}"
        raise BadRequest(message, param="model", status=404, code="model_not_found")
    if request.tools and request.model != "demo":
        raise BadRequest(_NO_TOOLS)
    _check_choice(request)
    _check_history(request.messages)
    return request


def _check_choice(request: _ChatRequest) -> None:
    """Check that `tool_choice` has a known form and names only tools of the request."""
    missing = (request.rules.allowed or frozenset()) - {tool.function.name for tool in request.tools or ()}
    if missing:
        message = f"tool_choice: there is no function {min(missing)!r} in tools; add it, or choose another"
        raise BadRequest(message, param="tool_choice")


def _check_history(messages: Sequence[Json]) -> None:
    """Check that every call is answered, every tool message answers a call, and arguments are objects."""
    unanswered: set[str] = set()
    for place, message in enumerate([*messages, {"role": "user"}]):
        param = f"messages.[{place}]"
        role = message.get("role")
        if role not in _ROLES:
            supported = f"Supported values are: {', '.join(_ROLES)}"
            raise BadRequest(f"Invalid value: {role!r}. {supported}", param=f"{param}.role")
        if role == "tool":
            if message.get("tool_call_id") not in unanswered:
                raise BadRequest(
                    "messages with role 'tool' must answer a preceding 'tool_calls'", param=param
                )
            unanswered.remove(message["tool_call_id"])
        elif unanswered:
            raise BadRequest(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. These had no response: {', '.join(sorted(unanswered))}",
                param=param,
            )
        else:
            unanswered = {
                _check_call(call, f"{param}.tool_calls") for call in message.get("tool_calls") or ()
            }


def _check_call(call: object, param: str) -> str:
    """Return the id of a call in the history; raise BadRequest for one that is not well-formed."""
    match call:
        case {"id": str(identifier), "function": {"name": str(), "arguments": str(arguments)}}:
            try:
                if isinstance(json.loads(arguments), dict):
                    return identifier
            except (ValueError, RecursionError):
                pass
    raise BadRequest(
        "a call needs an id, and a function with a name and arguments that are a JSON object", param=param
    )


def _check_schema(schema: Json) -> None:
    """Check that the answers of a schema have one form, as OpenAI does."""
    if "anyOf" in schema:
        message = "Invalid schema for response_format: 'anyOf' is not permitted at its root"
        raise BadRequest(message, param="response_format")


def _answer(request: _ChatRequest, chunk_characters: int) -> Response:
    tools = [tool.model_dump() for tool in request.tools or ()]
    # The same request has the same answer and ids; a longer conversation has new ones.
    seed = hashlib.sha256(json.dumps(request.messages, sort_keys=True).encode()).hexdigest()
    conversation = read_conversation(request.messages, tools)
    answer = reply(conversation, request.rules, seed)
    match request.response_format:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            _check_schema(schema)
            answer = to_json_answer(answer, conversation, schema)
        case {"type": "json_object"}:
            answer = to_json_answer(answer, conversation, {})
    head = {
        "id": f"chatcmpl-{seed[:24]}",
        "created": int(time.time()),
        "model": request.model,
        "system_fingerprint": "demo",
    }
    usage = _count_tokens([*request.messages, *tools], answer)
    finish = "tool_calls" if answer.calls else "stop"
    if request.stream:
        with_usage = usage if (request.stream_options or {}).get("include_usage") else None
        chunks = _stream(head, answer, finish, chunk_characters, with_usage)
        return StreamingResponse(_to_sse(chunks), media_type="text/event-stream")
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_to_call(call) for call in answer.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": usage})


def _stream(head: Json, answer: Reply, finish: str, size: int, usage: Json | None) -> Iterator[Json]:
    """Yield chunks with `size` characters of the answer each; last the usage, if it is given."""

    def chunk(delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "object": "chat.completion.chunk", "choices": [choice]}

    yield chunk({"role": "assistant", "content": None if answer.calls else ""})
    for piece in _cut(answer.text, size):
        yield chunk({"content": piece})
    for index, call in enumerate(answer.calls):
        tool_call = _to_call(call)
        arguments = tool_call["function"]["arguments"]
        yield chunk(
            {"tool_calls": [{**tool_call, "index": index, "function": {"name": call.name, "arguments": ""}}]}
        )
        for piece in _cut(arguments, size):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, finish)
    if usage is not None:
        yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}


def _to_sse(chunks: Iterator[Json]) -> Iterator[str]:
    yield from (f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n" for chunk in chunks)
    yield "data: [DONE]\n\n"


def _to_call(call: Call) -> Json:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _cut(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


def _count_tokens(prompt: Sequence[Mapping[str, object]], answer: Reply) -> Json:
    """Count words and signs as tokens, those of the prompt's JSON and of the answer."""
    before = len(_TOKEN.findall(json.dumps(prompt, ensure_ascii=False)))
    arguments = [_to_call(call)["function"]["arguments"] for call in answer.calls]
    after = len(_TOKEN.findall(" ".join([answer.text, *arguments])))
    return {"prompt_tokens": before, "completion_tokens": after, "total_tokens": before + after}
