"""Direct calls (`beckon.dev/dispatch: direct`): no Broker, no Trigger, no shim."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import aiohttp

from beckon_agent.core.context import request_id
from beckon_agent.tool_calls.outcome import (
    NEVER_CONNECTED,
    PATIENCE,
    CallOutcome,
    NotAccepted,
    OutgoingCall,
    call_event,
    failed_outcome,
    from_json,
    from_reply,
    is_repeatable,
    pause_before_retry,
    problem_in,
    read_body,
    retry_until_accepted,
    too_large,
    trace_headers,
    unknown_outcome,
)
from beckon_agent.tool_calls.recorded_events import record_call, record_problem
from beckon_contract.cloudevents.events import CloudEvent, is_event, to_binary
from beckon_contract.cloudevents.extensions import is_json
from beckon_contract.failures import Reason
from beckon_contract.jsontext import NotJsonError, loads
from beckon_contract.resources.tools import Tool
from beckon_contract.yamltext import NotReadable

_SHOWN_BYTES = 500  # of an error that is no problem document

logger = logging.getLogger(__name__)


class DirectRoute:
    """Posts calls to the addresses of their tools. Never raises for a failure of a tool."""

    def __init__(self, session: aiohttp.ClientSession, max_reply_bytes: int) -> None:
        self._session = session
        self._max_reply_bytes = max_reply_bytes

    async def send(self, call: OutgoingCall) -> CallOutcome:
        """Return the outcome of a call, within its `wait` seconds."""
        event = _with_expiry(call_event(call), call.wait)
        record_call(event)
        try:
            async with asyncio.timeout(call.wait):
                return await retry_until_accepted(
                    lambda _: self._post_event(call.tool, event),
                    call.wait,
                    lambda error: call.may_be_repeated or isinstance(error, NEVER_CONNECTED),
                )
        except NotAccepted as busy:
            return failed_outcome(Reason.UNDELIVERABLE, f"the tool takes no calls now: {busy.detail}")
        except NEVER_CONNECTED as error:
            _log_failure(call.tool, error)
            return failed_outcome(
                Reason.UNDELIVERABLE, "the tool does not answer at its address; it was not called"
            )
        except TimeoutError:
            return failed_outcome(Reason.TIMEOUT, f"the tool gave no answer within {call.wait:g} seconds")
        except (aiohttp.ClientError, OSError) as error:
            _log_failure(call.tool, error)
            return unknown_outcome("the connection to the tool was lost")

    async def _post_event(self, tool: Tool, event: CloudEvent) -> CallOutcome:
        headers, body = to_binary(event)
        # A connection a call: an idle one may end just when a call goes out, which must not be repeated
        # blindly, and it would bring every call to the same of the tool's pods.
        headers += [("prefer", "reply"), ("x-request-id", request_id()), ("connection", "close")]
        headers += trace_headers(event)
        async with self._session.post(
            tool.address, data=body, headers=headers, timeout=PATIENCE, allow_redirects=False
        ) as response:
            content = await read_body(response, self._max_reply_bytes)
            if content is None:
                return too_large(self._max_reply_bytes)
            if 200 <= response.status < 300:
                return _read_answer(tool, response, content)
            if _was_not_taken(response, tool):
                raise NotAccepted(
                    pause_before_retry(response.headers.get("retry-after", "")),
                    _error_text(response, content),
                )
            record_problem(problem_in(content))
            return _read_failure(response, content)


def _with_expiry(event: CloudEvent, seconds: float) -> CloudEvent:
    """Return the event with its `expirytime`, so many seconds from now.

    The shim sets it, too, for calls through a Broker.
    """
    moment = datetime.now(UTC) + timedelta(seconds=seconds)
    stamp = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event.extended(expirytime=stamp)


def _read_answer(tool: Tool, response: aiohttp.ClientResponse, content: bytes) -> CallOutcome:
    content_type = response.content_type
    if is_event(response.raw_headers):
        return from_reply(response.raw_headers, content)
    if not content:
        if tool.reply == "any":
            return CallOutcome(None)
        status = response.status
        return failed_outcome(
            Reason.TOOL_FAILED, f"the tool took the call and answered without a result (HTTP status {status})"
        )
    if content_type == "text/plain":
        return CallOutcome(content.decode(errors="replace"))
    if not is_json(content_type):
        return failed_outcome(
            Reason.TOOL_FAILED,
            f"the tool answered with {content_type}, which is no event, no JSON and no text",
        )
    try:
        return from_json(loads(content))
    except (NotJsonError, NotReadable) as error:
        return failed_outcome(Reason.TOOL_FAILED, f"the tool's answer is not readable: {error}")


def _was_not_taken(response: aiohttp.ClientResponse, tool: Tool) -> bool:
    """True if the answer asks for another try.

    A 503 without Retry-After may also come from a tool that broke half-way, so it counts for repeatable
    tools only.
    """
    if response.status == 429:
        return True
    return response.status == 503 and ("retry-after" in response.headers or is_repeatable(tool))


def _read_failure(response: aiohttp.ClientResponse, content: bytes) -> CallOutcome:
    text = _error_text(response, content)
    if response.status in (400, 422):
        return failed_outcome(Reason.INVALID_ARGUMENTS, text)
    if 300 <= response.status < 400:
        return failed_outcome(
            Reason.UNDELIVERABLE,
            f"the tool's address answers with a redirect (HTTP status {response.status})",
        )
    return failed_outcome(Reason.TOOL_FAILED, f"the tool answered with HTTP status {response.status}: {text}")


def _error_text(response: aiohttp.ClientResponse, content: bytes) -> str:
    """Return the text of an error answer.

    It is a problem's detail or title, a short text, or else the reason of the HTTP status.
    """
    problem = problem_in(content)
    for member in ("detail", "title"):
        if isinstance(problem.get(member), str) and problem[member]:
            return str(problem[member])
    if (
        content
        and len(content) <= _SHOWN_BYTES
        and response.content_type in ("text/plain", "application/json")
    ):
        return content.decode(errors="replace").strip()
    return response.reason or "no reason given"


def _log_failure(tool: Tool, error: Exception) -> None:
    text = str(error) or type(error).__name__
    logger.warning("request %s: %s at %s does not answer: %s", request_id(), tool.name, tool.address, text)
