"""One call by an HTTP rule: its request, its retries, and its result or error from the API's answer."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn
from urllib.parse import urlsplit

import jmespath
import stamina
from jmespath.exceptions import JMESPathError

from beckon_adapter.declaration import Call, Run
from beckon_adapter.egress.client import EgressClient, HttpAnswer, Unreachable
from beckon_adapter.egress.outcomes import convert_failures
from beckon_adapter.request import HttpRequest, build_request
from beckon_adapter.rule import IDEMPOTENT, JSON, HttpRule, parse_rule
from beckon_adapter.templates import UnfitArgument
from beckon_contract.jsontext import NotJsonError, dumps, loads
from beckon_contract.retry_after import read_retry_after
from beckon_runtime.tracing import carried, mark_failed
from beckon_tools.answers import Media
from beckon_tools.errors import OutcomeUnknown, Retry, ToolError
from beckon_tools.signature import InvalidArguments
from beckon_tools.telemetry import trace_request

MAX_WORDS = 300  # characters of what an API says of a failure; a dead letter holds 512 bytes

# Said by a proxy that has no answer of the API; the numbers from 520 are Cloudflare's.
_OF_GATEWAYS = frozenset({502, 503, 504, *range(520, 531)})

_TEXTUAL = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/sql",
        "application/toml",
        "application/x-ndjson",
        "application/x-www-form-urlencoded",
        "application/xml",
        "application/yaml",
        "image/svg+xml",
    }
)
_TEXTUAL_SUFFIXES = ("+xml", "+yaml")
_DEEPEST = 5  # members of an error within each other
# The members in which APIs describe an error: RFC 9457, and common practice.
_WORDS = (
    "detail",
    "message",
    "error_description",
    "error_message",
    "description",
    "error",
    "errors",
    "title",
)


def result_of(rule: HttpRule, answer: HttpAnswer, host: str, *, repeatable: bool) -> object:
    """Return the result of a call.

    Raises `InvalidArguments` for errors that the model can correct (400, 422), and `ToolError` for other
    refusals. A temporary failure (429, 5xx) raises `Retry` if the request is `repeatable` or cannot have
    begun. Otherwise errors of the API raise `ToolError`, and those of a gateway before it
    `OutcomeUnknown`.
    """
    if answer.status >= 400:
        raise_failure(answer, host, repeatable=repeatable)
    if answer.status == 304 or answer.status < 200 or answer.status >= 300:
        raise ToolError(f"{host} answered with status {answer.status}, which is no result")
    if not answer.body.strip():
        return {"status": answer.status}
    document = read_document(answer, host)
    return document if rule.result is None else _select_result(rule.result, answer, document, host)


def is_json(media_type: str) -> bool:
    """Return True if a media type is JSON or based on it."""
    return media_type == JSON or media_type.endswith("+json") or media_type == "text/json"


def read_document(answer: HttpAnswer, host: str) -> object:
    """Return what an API answered: JSON, a text, or `Media`. Raises `ToolError`."""
    if is_json(answer.media_type):
        try:
            document: object = loads(answer.body)
        except NotJsonError as error:
            raise ToolError(f"{host} answered with what it calls JSON and is none: {error}") from None
        return document
    if not answer.media_type:
        return _guess_document(answer.body)
    if answer.media_type.startswith("text/") or _is_textual(answer.media_type):
        return _decode_text(answer)
    return Media(answer.media_type, answer.body)


def _guess_document(body: bytes) -> object:
    """Read an answer without a media type: as JSON, text, or bytes."""
    try:
        document: object = loads(body)
    except NotJsonError:
        try:
            return body.decode()
        except UnicodeDecodeError:
            return Media("application/octet-stream", body)
    return document


def _is_textual(media_type: str) -> bool:
    return media_type in _TEXTUAL or media_type.endswith(_TEXTUAL_SUFFIXES)


def _decode_text(answer: HttpAnswer) -> str:
    try:
        return answer.body.decode(answer.charset or "utf-8", errors="replace")
    except (LookupError, ValueError):  # unknown, or an encoding of Python's that is none for texts
        return answer.body.decode("utf-8", errors="replace")


def _select_result(expression: str, answer: HttpAnswer, document: object, host: str) -> object:
    if isinstance(document, Media | str) and not is_json(answer.media_type):
        raise ToolError(
            f"{host} answered with {answer.media_type or 'no JSON'}; the rule's result needs JSON"
        )
    try:
        return jmespath.search(expression, document)
    except (JMESPathError, RecursionError, ValueError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise ToolError(f"the rule's result does not fit what {host} answered: {first[:MAX_WORDS]}") from None


def raise_failure(answer: HttpAnswer, host: str, *, repeatable: bool) -> NoReturn:
    """Raise the error for an answer with a status of 400 or more, as `result_of` does."""
    reason = _error_text(answer)
    detail = f"{host} answered {answer.status}" + (f": {reason}" if reason else "")
    if (answer.status == 429 or answer.status >= 500) and (repeatable or _has_not_begun(answer)):
        after = read_retry_after(answer.retry_after)
        raise Retry(detail, after=None if after is None else math.ceil(after))
    if answer.status in _OF_GATEWAYS:
        raise OutcomeUnknown(f"{detail}; the call may have had its effect, and was not repeated")
    if answer.status in (400, 422):
        raise InvalidArguments((detail,))
    if answer.status in (401, 403, 407):
        detail += "; the credential is for the owner of the HTTP adapter to mend"
    raise ToolError(detail)


def _has_not_begun(answer: HttpAnswer) -> bool:
    """Return True if the API refused the request before processing it.

    It did so with 429, or with 503 and `Retry-After`, and without a redirect before.
    """
    if answer.redirected:
        return False
    return answer.status == 429 or (answer.status == 503 and bool(answer.retry_after))


def _error_text(answer: HttpAnswer) -> str:
    """Return the API's own error message, as one short line."""
    if is_json(answer.media_type) or not answer.media_type:
        try:
            text = _detail_of(loads(answer.body))
        except NotJsonError:
            text = _decode_text(answer) if not answer.media_type else ""
    elif answer.media_type == "text/plain":
        text = _decode_text(answer)
    else:
        text = ""  # a page for people
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= MAX_WORDS else line[:MAX_WORDS].rstrip() + "…"


def _detail_of(document: Any) -> str:
    for _ in range(_DEEPEST):
        problem = document if isinstance(document, Mapping) else {}
        document = next((problem[name] for name in _WORDS if problem.get(name)), document)
    if isinstance(document, str):
        return document
    return dumps(document).decode() if document else ""


logger = logging.getLogger(__name__)

_FIRST_WAIT, _LONGEST_WAIT = 0.2, 2.0  # seconds between attempts
_ANY_JSON = "application/json, text/*;q=0.8, */*;q=0.5"
_KEY = "idempotency-key"


@dataclass(frozen=True, slots=True)
class HttpCaller:
    """Calls HTTP APIs through one `EgressClient`."""

    egress: EgressClient

    def prepare_rule(self, text: str, parameters: Mapping[str, object]) -> Run:
        """Return the function for the calls of one rule; raise `InvalidRule`."""
        rule = parse_rule(text, parameters)

        async def run_call(arguments: Mapping[str, object], call: Call) -> object:
            return await self.call_api(rule, arguments, call)

        return run_call

    async def call_api(self, rule: HttpRule, arguments: Mapping[str, object], call: Call) -> object:
        """Return the result of a call by a rule.

        Raises `InvalidArguments`, `ToolError`, `OutcomeUnknown`, and `Retry` if the Broker should deliver
        it again.
        """
        host = urlsplit(rule.url).hostname or ""
        repeatable = _is_repeatable(rule, call)
        with convert_failures(host, call, repeatable=repeatable):
            try:
                request = _with_default_headers(build_request(rule, arguments), call)
            except UnfitArgument as error:
                raise InvalidArguments((str(error),)) from None
            answer = await self._send_with_retries(rule, request)
        return result_of(rule, answer, host, repeatable=repeatable)

    async def _send_with_retries(self, rule: HttpRule, request: HttpRequest) -> HttpAnswer:
        """Send a request with the rule's retries; return the last answer.

        Only requests with an idempotent method are repeated.
        """
        attempts = 1 + (rule.retries if rule.method in IDEMPOTENT else 0)
        number = 0
        async for attempt in stamina.retry_context(
            on=_Passing, attempts=attempts, timeout=None, wait_initial=_FIRST_WAIT, wait_max=_LONGEST_WAIT
        ):
            number += 1
            with attempt:
                try:
                    answer = await self._send_once(rule, request)
                except Unreachable as error:
                    if number < attempts:
                        raise _Passing from error
                    raise
                if answer.status >= 500 and number < attempts:
                    raise _Passing
        return answer

    async def _send_once(self, rule: HttpRule, request: HttpRequest) -> HttpAnswer:
        with trace_request(request.method, request.url) as span:
            answer = await self.egress.send_request(_with_trace(request), rule.credential, rule.timeout)
            span.set_attribute("http.response.status_code", answer.status)
            if answer.status >= 400:
                mark_failed(span, str(answer.status))
            return answer


class _Passing(Exception):
    """A temporary failure; the next attempt may succeed."""


def _with_default_headers(request: HttpRequest, call: Call) -> HttpRequest:
    """Add the default headers `Accept` and `Idempotency-Key`.

    The key is for methods that are not idempotent; it is the same at every delivery of the call. Headers
    of the rule take precedence.
    """
    names = {name for name, _ in request.headers}
    more = [] if "accept" in names else [("accept", _ANY_JSON)]
    if request.method not in IDEMPOTENT and _KEY not in names:
        # Many APIs do once what comes twice under one key (draft-ietf-httpapi-idempotency-key-header).
        more.append((_KEY, call.key))
    return replace(request, headers=(*request.headers, *more))


def _is_repeatable(rule: HttpRule, call: Call) -> bool:
    """Return True if another request does no harm.

    The method is idempotent by HTTP, or the EventType declares the call repeatable.
    """
    return rule.method in IDEMPOTENT or call.repeatable


def _with_trace(request: HttpRequest) -> HttpRequest:
    """Add `traceparent` to the request, unless the rule sets it.

    `tracestate` is not sent: the data of other vendors in it are no business of an API.
    """
    if any(name.lower() == "traceparent" for name, _ in request.headers):
        return request
    own = tuple((name, value) for name, value in carried().items() if name == "traceparent")
    return replace(request, headers=(*request.headers, *own))
