"""One call by an HTTP rule: its request, retries and outcome."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import stamina

from beckon_adapter.answers import result_of
from beckon_adapter.declaration import Call, Run
from beckon_adapter.egress.client import EgressClient, HttpAnswer, TooLarge, Unreachable
from beckon_adapter.egress.hosts import NoCredential, NotAllowed
from beckon_adapter.request import HttpRequest, build_request
from beckon_adapter.rule import IDEMPOTENT, HttpRule, parse_rule
from beckon_adapter.templates import UnfitArgument
from beckon_runtime.tracing import carried
from beckon_tools.errors import OutcomeUnknown, Retry, ToolError
from beckon_tools.signature import InvalidArguments
from beckon_tools.telemetry import mark_failed, trace_request

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
        try:
            request = _with_default_headers(build_request(rule, arguments), call)
            answer = await self._send_with_retries(rule, request)
        except UnfitArgument as error:
            raise InvalidArguments((str(error),)) from None
        except (NotAllowed, NoCredential) as error:
            logger.warning("event %s was not sent: %s", call.id, error)
            raise ToolError(str(error)) from None
        except TooLarge as error:
            raise ToolError(f"{host} {error}") from None
        except Unreachable as error:
            raise _lost_call_error(rule, call, host, error) from None
        return result_of(rule, answer, host, repeatable=_is_repeatable(rule, call))

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
    given = {name for name, _ in request.headers}
    more = [] if "accept" in given else [("accept", _ANY_JSON)]
    if request.method not in IDEMPOTENT and _KEY not in given:
        # Many APIs do once what comes twice under one key (draft-ietf-httpapi-idempotency-key-header).
        more.append((_KEY, call.key))
    return replace(request, headers=(*request.headers, *more))


def _is_repeatable(rule: HttpRule, call: Call) -> bool:
    """Return True if another request does no harm.

    The method is idempotent by HTTP, or the EventType declares the call repeatable.
    """
    return rule.method in IDEMPOTENT or call.repeatable


def _lost_call_error(rule: HttpRule, call: Call, host: str, error: Unreachable) -> Exception:
    """Return the exception for a call without an answer.

    It is `Retry` if the request is repeatable or was not sent, else `OutcomeUnknown`.
    """
    if _is_repeatable(rule, call) or not error.sent:
        return Retry(f"{host} {error}")
    return OutcomeUnknown(f"{host} {error}; the call may have had its effect, and was not repeated")


def _with_trace(request: HttpRequest) -> HttpRequest:
    """Add `traceparent` to the request, unless the rule sets it.

    `tracestate` is not sent: the data of other vendors in it are no business of an API.
    """
    if any(name.lower() == "traceparent" for name, _ in request.headers):
        return request
    own = tuple((name, value) for name, value in carried().items() if name == "traceparent")
    return replace(request, headers=(*request.headers, *own))
