"""The errors of a model, by the party to act, and their reader.

    ModelError
    ├── ModelUnavailable        no one: it may work later (5xx, connection, time-out)
    │   ├── RateLimited         the same, for a 429
    │   └── ModelOverloaded     the same, for a 503
    ├── StreamBroken            the user: the answer broke off after its beginning was shown
    ├── ModelAuthError          the operator: key, permission or account
    │   └── QuotaExhausted      the operator: nothing is left to spend, and no wait mends that
    ├── InvalidOutput           the user: the answer does not fit the wanted format
    ├── ToolChoiceNotHonoured   the user: the model made no call, although one was required
    └── ModelRefused            the caller: this request will never do (other 4xx)
        ├── ToolsNotSupported   the agent: speak a dialect instead of native tool calls
        ├── SchemaRejected      the agent: lower the declarations further, then as above
        ├── ContextTooLong      the agent: shorten the conversation
        ├── ContentNotSupported the user: this model takes no such image, sound or file
        └── FieldNotSupported   the user: this model takes no such field of a request

No message holds the API key, also where a server repeats it.

Error answers come in many shapes: OpenAI's object, Mistral's flat one, Gemini's array around one,
Ollama's plain string, FastAPI's `detail`, a web page from a proxy, and JSON under a content type that
denies it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from beckon_agent.core import json_values
from beckon_contract.retry_after import read_retry_after


class ModelError(Exception):
    """The model gave no answer.

    `status` is the HTTP status, or the one named by the error. `code` is the server's code for it; `ours` is
    our own, the same in the errors of every API for every server. `param` is the field to change.
    `retry_after` is the wait that the server demands, in seconds.
    """

    ours: str = ""
    param: str = "messages"
    retry_after: float | None = None

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code


class ModelUnavailable(ModelError):
    """No answer now; the client has already tried again."""


class RateLimited(ModelUnavailable):
    """The server takes no more requests for now."""

    ours = "rate_limit_exceeded"


class ModelOverloaded(ModelUnavailable):
    """The server is overloaded, or not ready."""

    ours = "overloaded"


class StreamBroken(ModelError):
    """The answer broke off after its beginning was shown; the error it is raised from is the cause."""


class ModelAuthError(ModelError):
    """The server does not accept the key, or the account behind it."""


class QuotaExhausted(ModelAuthError):
    """The account behind the key has nothing left to spend."""

    ours = "insufficient_quota"


class InvalidOutput(ModelError):
    """The answer does not fit the format that the request wants."""

    ours = "invalid_output"
    param = "response_format"


class ToolChoiceNotHonoured(ModelError):
    """The model made no required call, also at a second request."""

    ours = "tool_choice_not_honoured"
    param = "tool_choice"


class ModelRefused(ModelError):
    """The server understood the request and will not do it; its own words are in the message."""


class ToolsNotSupported(ModelRefused):
    """The server or the model has no native tool calling."""


class SchemaRejected(ModelRefused):
    """The server cannot work with the JSON Schema of a declared tool."""


class ContextTooLong(ModelRefused):
    """The conversation has more tokens than the model takes."""

    ours = "context_length_exceeded"


class ContentNotSupported(ModelRefused):
    """The model takes no images, no sound or no files."""

    ours = "unsupported_content"


class FieldNotSupported(ModelRefused):
    """The server takes no such field, and the answer would be another without it."""

    ours = "field_not_supported"

    def __init__(self, field_name: str, reason: str, *, status: int | None = None) -> None:
        message = f"the agent's model does not take {field_name!r} ({reason}); leave it out"
        super().__init__(message, status=status)
        self.param = field_name


_LONGEST = 1000
_DEEPEST = 5
_STATUS = re.compile(r"[45][0-9]{2}")
_SHORTEST_SECRET = 8
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)

# In order: the first that matches decides. Old llama.cpp and some gateways answer
# 500 for what the request can never get, so the words count for more than the status.
_WORDS: tuple[tuple[type[ModelError], re.Pattern[str]], ...] = (
    (
        ContextTooLong,
        re.compile(
            r"context[ _]length|context[ _]size|context[ _]window|maximum context|prompt (is )?too long"
            r"|input (is )?too long|too many (input )?tokens|exceeds? the (maximum|limit of) .{0,40}tokens",
            re.IGNORECASE,
        ),
    ),
    # By its code alone: Gemini says that a quota was exceeded for a limit of a minute, too.
    (QuotaExhausted, re.compile("insufficient_quota")),
    (
        ModelAuthError,
        re.compile(
            r"(invalid|incorrect|missing|no) api[ _]key|api key not valid|unauthori[sz]ed",
            re.IGNORECASE,
        ),
    ),
    (
        ContentNotSupported,
        # OpenAI, Ollama, vLLM, llama.cpp, OpenRouter, and servers that take text alone
        # (vllm#11629, ollama#17301, llama.cpp#13566 and #12947, LibreChat#2494).
        re.compile(
            r"(does not|doesn't|do not|not) (support|accept) (the )?(image|audio|video|file|pdf|multi-?modal)"
            r"|(image|audio|video|file|pdf)s?( input| content)?s? (is|are) (not|only) supported"
            r"|image_url is only supported|no endpoints found that support (image|audio|file|input)"
            r"|at most 0 (image|audio|video)|not a multi-?modal model|unsupported content part type"
            r"|(unknown variant|invalid content type)[ :]*[`'\"]?(image_url|input_audio|file)\b"
            r"|cannot unmarshal array into .{0,40}content of type string",
            re.IGNORECASE,
        ),
    ),
    (
        ToolsNotSupported,
        re.compile(
            r"tool choice requires|cannot use tools|enable-auto-tool-choice|tool-call-parser"
            r"|(does not|doesn't|do not|not) support (the )?[`'\"]?(tools?|function)\b"
            r"|unsupported param(eter)?: [`'\"]?(tools|functions)\b|unknown method: keys"
            r"|no endpoints found that support tool"
            r"|[`'\"]?(tools?|tool (calling|use)|function calling|functions)[`'\"]? (is|are) not supported",
            re.IGNORECASE,
        ),
    ),
    (
        SchemaRejected,
        re.compile(
            r"pars(e|ing) grammar|initialize samplers|invalid schema for function|invalid json schema"
            r"|invalid_function_parameters|function_declarations?.{0,80}(schema|parameters|properties)"
            r"|json schema.{0,80}(unsupported|not supported|conversion failed)",
            re.IGNORECASE | re.DOTALL,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class ErrorReader:
    """Reads the errors of one server; `secret` is struck out of them."""

    server: str
    secret: str = field(default="", repr=False)

    def read_response(self, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
        """Return the error in an HTTP error response."""
        try:
            parsed = json_values.parse_json(body)
        except ValueError:
            parsed = _to_plain_text(body)
        return self._to_error(parsed, status, requested_wait(headers))

    def in_answer(self, event: str, data: object) -> ModelError | None:
        """Return the error in a payload of a 200 answer, `None` without one."""
        document = data[0] if isinstance(data, list) and data else data
        fields = json_values.as_mapping(document)
        flat = fields.get("object") == "error" or (event == "error" and not fields.get("choices"))
        if not fields.get("error") and not flat:
            return None
        return self._to_error(document, None, None)

    def to_unavailable(self, reason: str) -> ModelUnavailable:
        """Return the error of a server without a readable answer."""
        return ModelUnavailable(self._redact_text(f"{self.server} {reason}"))

    def _to_error(self, body: object, status: int | None, wait: float | None) -> ModelError:
        document, code = _find_message(body), _find_code(body)
        status = status or _find_status(body)
        kind = _error_class(status, f"{code} {document}")
        reason = self._redact_text(document)[:_LONGEST] or "no reason given"
        shown = f" ({status})" if status else ""
        error = kind(f"{self.server} refused the request{shown}: {reason}", status=status, code=code)
        if isinstance(error, ModelUnavailable):
            error = kind(f"{self.server} has no answer now{shown}: {reason}", status=status, code=code)
            error.retry_after = wait
        return error

    def _redact_text(self, text: str) -> str:
        # A short key is a stand-in such as "none"; striking it out would only garble words.
        if len(self.secret) >= _SHORTEST_SECRET:
            text = text.replace(self.secret, "***")
        return " ".join(text.split())


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server wants its client to wait.

    OpenAI's servers send them in milliseconds, too, which are preferred.
    """
    exact = read_retry_after(headers.get("retry-after-ms", ""), unit=0.001)
    return read_retry_after(headers.get("retry-after", "")) if exact is None else exact


_WAITING: dict[int | None, type[ModelError]] = {429: RateLimited, 503: ModelOverloaded}


def _error_class(status: int | None, words: str) -> type[ModelError]:
    if status == 402:  # Payment Required: DeepSeek, OpenRouter
        return QuotaExhausted
    if status in (401, 403):
        return ModelAuthError
    for kind, pattern in _WORDS:
        if pattern.search(words) and (status != 429 or issubclass(kind, ModelAuthError)):
            return kind
    if status == 413:
        return ContextTooLong
    if status in _WAITING:
        return _WAITING[status]
    if status is None or status in (408, 409, 425) or status >= 500:
        return ModelUnavailable
    return ModelRefused


def _find_message(body: object, depth: int = 0) -> str:
    """Return the message in an error body, from any of its places."""
    if isinstance(body, str):
        return body
    if depth > _DEEPEST:
        return ""
    if isinstance(body, list):
        return "; ".join(filter(None, (_find_message(member, depth + 1) for member in body)))
    fields = json_values.as_mapping(body)
    for key in ("error", "message", "detail", "msg", "title", "error_message"):
        message = _find_message(fields.get(key), depth + 1) if key in fields else ""
        place = ".".join(map(str, json_values.as_sequence(fields.get("loc"))))  # of FastAPI
        if message and place:
            return f"{place}: {message}"
        if message:
            raw = json_values.as_text(json_values.as_mapping(fields.get("metadata")).get("raw"))
            return f"{message}: {raw}" if raw else message
    return ""


def _find_code(body: object) -> str:
    inner = body[0] if isinstance(body, list) and body else body
    fields = json_values.as_mapping(inner)
    error = json_values.as_mapping(fields.get("error")) or fields
    for key in ("code", "status", "type"):
        value = error.get(key)
        if isinstance(value, str) and value and not value.isdecimal():
            return value
    return ""


def _find_status(body: object) -> int | None:
    """Return the HTTP status named by an error in a 200 answer."""
    inner = json_values.as_mapping(body)
    error = json_values.as_mapping(inner.get("error")) or inner
    for key in ("status_code", "code", "status"):
        value = error.get(key)
        if isinstance(value, str | int) and _STATUS.fullmatch(str(value)):
            return int(value)
    return None


def _to_plain_text(body: bytes) -> str:
    return _TAGS.sub(" ", body.decode("utf-8", "replace"))
