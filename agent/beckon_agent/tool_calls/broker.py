"""Calls through the shim to the Broker, and the shim's answers.

The shim answers with one JSON document, or with a stream from the tool's first report on.
The keys of the shim sign calls and authenticate late replies.
"""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import aiohttp

from beckon_agent.core.context import request_id
from beckon_agent.core.json_values import as_mapping
from beckon_agent.model.sse import Payload, UnreadableAnswer, read_payloads
from beckon_agent.tool_calls.outcome import (
    NEVER_CONNECTED,
    PATIENCE,
    CallOutcome,
    NotAccepted,
    OutgoingCall,
    RawHeaders,
    call_event,
    failed_outcome,
    from_reply,
    pause_before_retry,
    problem_in,
    read_body,
    retry_until_accepted,
    too_large,
    trace_headers,
    unknown_outcome,
)
from beckon_agent.tool_calls.progress import GrowingReports, OnReport, current_listener, read_report
from beckon_agent.tool_calls.recorded_events import record_call, record_problem, record_receipt
from beckon_contract.cloudevents.events import (
    STRUCTURED_TYPE,
    CloudEvent,
    EventError,
    from_structured,
    to_binary,
)
from beckon_contract.correlation import Keyring, RawHeader, is_of_call, sign_request, verify
from beckon_contract.failures import Reason


class ReplyKeys:
    """The keys in force, from a text or from a file. The file is read again when it changes."""

    def __init__(self, text: str = "", path: Path | None = None) -> None:
        """Read the keys; raise `ValueError` for a bad one, without showing it.

        Raises `OSError` for an unreadable file.
        """
        self._path = path
        self._state: tuple[int, int, int] | None = None
        self._ring = Keyring.parse(text) if text else None
        if path is not None:
            self._read_keys(path)

    def __bool__(self) -> bool:
        """True if there are keys at all."""
        return self._ring is not None

    def is_proven(self, token: str, call_id: str) -> bool:
        """True if a token was given to the receiver of this call."""
        self._refresh_keys()
        claim = verify(self._ring, token) if self._ring is not None else None
        return (
            self._ring is not None and claim is not None and is_of_call(self._ring, claim, call_id.encode())
        )

    def sign_call(self, path: str, headers: Iterable[RawHeader], body: bytes) -> str | None:
        """Return the `authorization` header of a call to the shim, `None` without keys."""
        self._refresh_keys()
        return None if self._ring is None else sign_request(self._ring, path, headers, body, time.time())

    def _refresh_keys(self) -> None:
        if self._path is None:
            return
        try:
            self._read_keys(self._path)
        except (OSError, ValueError) as error:
            logger.warning("the keys in %s cannot be used, the old ones stay: %s", self._path, error)

    def _read_keys(self, path: Path) -> None:
        status = path.stat()  # of what the link points to: the kubelet swaps the link
        state = status.st_mtime_ns, status.st_size, status.st_ino
        if state != self._state:
            self._ring = Keyring.parse(path.read_text())
            self._state = state


EVENT_STREAM = "text/event-stream"
RECEIPT = "beckon-receipt"
"""The header by which a caller says that it confirms replies, and an answer says at which path."""

_STRUCTURED: RawHeaders = ((b"content-type", STRUCTURED_TYPE.encode()),)
_STATUS = {"reply": 200, "accepted": 202}


@dataclass(frozen=True, slots=True)
class ShimAnswer:
    """The final answer of the shim.

    `content` is `None` if it is above the size limit. `pause` is the text of its Retry-After header;
    `receipt` is the path at which a stored reply is confirmed.
    """

    status: int
    headers: RawHeaders
    content: bytes | None
    pause: str = ""
    receipt: str = ""


async def read_answer(response: aiohttp.ClientResponse, hear: OnReport | None, limit: int) -> ShimAnswer:
    """Return the final answer; pass the reports before it to `hear`. Raises the errors of aiohttp."""
    receipt = response.headers.get(RECEIPT, "")
    if hear is not None and response.content_type == EVENT_STREAM:
        return _to_answer(await _read_last_payload(response, hear), limit, receipt)
    content = await read_body(response, limit)
    pause = response.headers.get("retry-after", "")
    return ShimAnswer(response.status, response.raw_headers, content, pause, receipt)


def _to_answer(last: Payload, limit: int, receipt: str) -> ShimAnswer:
    content = last.text if len(last.text) <= limit else None
    status = _STATUS.get(last.event) or as_mapping(last.data).get("status")
    return ShimAnswer(status if isinstance(status, int) else 502, _STRUCTURED, content, receipt=receipt)


async def _read_last_payload(response: aiohttp.ClientResponse, hear: OnReport) -> Payload:
    """Return the last payload of a stream; pass its reports to `hear`.

    The stream is read to its end, so that the connection can serve again.
    """
    last: Payload | None = None
    try:
        async with aclosing(read_payloads(response.content.iter_any())) as frames:
            async for payload in frames:
                if payload.event == "progress":
                    _pass_report(payload, hear)
                else:
                    last = payload
    except (aiohttp.ClientPayloadError, UnreadableAnswer) as error:
        raise aiohttp.ServerDisconnectedError(f"its stream broke: {error}") from error
    if last is None:
        raise aiohttp.ServerDisconnectedError("its stream ended before the answer")
    return last


def _pass_report(payload: Payload, hear: OnReport) -> None:
    try:
        report = read_report(from_structured(payload.text))
    except EventError:
        return
    if report is not None:
        hear(report)


_MARGIN = 5.0  # the shim answers at the deadline; only a dead shim is waited for longer

_RECEIPT_SECONDS = 3.0  # the shim waits no longer
_WITH_RECEIPT = (200, 202)

_TRIES = 6  # six seconds: a shim that was killed is started again within them
_UNKNOWN, _DEAD_LETTER = "/outcome-unknown", "/undeliverable"  # the ends of the types of problems

logger = logging.getLogger(__name__)


class BrokerRoute:
    """Sends calls to the shim at `url`. Never raises for a failure of a tool or a Broker."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, max_reply_bytes: int, keys: ReplyKeys | None = None
    ) -> None:
        """Prepare the route; `keys` sign the calls.

        A shim takes calls without a signature only if it is open.
        """
        self._session = session
        self._url = url.rstrip("/")
        self._max_reply_bytes = max_reply_bytes
        self._keys = keys or ReplyKeys()
        self._receipts: set[asyncio.Task[None]] = set()

    async def send(self, call: OutgoingCall) -> CallOutcome:
        """Return the outcome of a call, within its `wait` seconds and a small margin."""
        event = call_event(call)
        record_call(event)
        try:
            async with asyncio.timeout(call.wait + _MARGIN):
                return await retry_until_accepted(
                    lambda left: self._post_call(call, event, left),
                    call.wait,
                    lambda error: call.may_be_repeated or isinstance(error, NEVER_CONNECTED),
                    tries=_TRIES,
                )
        except NotAccepted as busy:
            because = f": {busy.detail}" if busy.detail else ""
            return failed_outcome(
                Reason.UNDELIVERABLE, f"the event platform is busy; the tool was not called{because}"
            )
        except NEVER_CONNECTED as error:
            self._log_failure(error)
            return failed_outcome(
                Reason.UNDELIVERABLE, "the event platform does not answer; the tool was not called"
            )
        except TimeoutError:
            return failed_outcome(Reason.TIMEOUT, f"no answer within {call.wait:g} seconds")
        except (aiohttp.ClientError, OSError) as error:
            self._log_failure(error)
            return replace(unknown_outcome("the connection to the event platform was lost"), lost=True)

    def _log_failure(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        logger.warning("request %s: the shim at %s does not answer: %s", request_id(), self._url, text)

    async def _post_call(self, call: OutgoingCall, event: CloudEvent, wait: float) -> CallOutcome:
        headers, body = to_binary(event)
        path = f"/{call.tool.namespace}/{call.tool.broker}"
        credential = self._keys.sign_call(
            path, [(name.encode(), value.encode()) for name, value in headers], body
        )
        if credential is not None:
            headers.append(("authorization", credential))
        prefer = f"respond-async, wait={wait:.3f}" if call.may_be_late else f"wait={wait:.3f}"
        headers += [("prefer", prefer), ("x-request-id", request_id()), *trace_headers(event)]
        if call.may_be_repeated:
            headers.append(("beckon-idempotent", "true"))
        if call.tool.reply == "any":
            headers.append(("beckon-reply", "any"))
        if call.tool.reply_attribute:
            headers.append(("beckon-reply-attribute", call.tool.reply_attribute))
        if call.may_be_late:
            headers.append((RECEIPT, "true"))
        hear = current_listener()
        if hear is not None:
            headers.append(("accept", f"*/*, {EVENT_STREAM}"))
        # A redirect would turn the POST into a GET.
        async with self._session.post(
            self._url + path, data=body, headers=headers, timeout=PATIENCE, allow_redirects=False
        ) as response:
            answer = await read_answer(
                response, GrowingReports(hear) if hear else None, self._max_reply_bytes
            )
        return self._to_outcome(call, answer)

    def _to_outcome(self, call: OutgoingCall, answer: ShimAnswer) -> CallOutcome:
        """Return the outcome in an answer; raises `NotAccepted`."""
        if answer.receipt and answer.status in _WITH_RECEIPT:
            record_receipt(partial(self._confirm_receipt, answer.receipt))
        if answer.content is None:
            return too_large(self._max_reply_bytes)
        if answer.status == 200:
            return from_reply(answer.headers, answer.content)
        if answer.status == 202 and call.may_be_late:
            return CallOutcome(None, later=True)
        problem = problem_in(answer.content)
        record_problem(problem)
        if answer.status == 503 and not problem.get("delivered"):
            raise NotAccepted(pause_before_retry(answer.pause), str(problem.get("detail") or ""))
        return _from_problem(answer.status, problem)

    def _confirm_receipt(self, path: str) -> None:
        """Send the shim the receipt for a stored reply.

        If the receipt does not arrive, the reply comes again.
        """
        task = asyncio.create_task(self._post_receipt(path))
        self._receipts.add(task)
        task.add_done_callback(self._receipts.discard)

    async def _post_receipt(self, path: str) -> None:
        credential = self._keys.sign_call(path, (), b"")
        headers = {} if credential is None else {"authorization": credential}
        try:
            async with (
                asyncio.timeout(_RECEIPT_SECONDS),
                self._session.post(
                    self._url + path,
                    headers=headers,
                    skip_auto_headers=("content-type",),  # it would be part of what is signed
                    allow_redirects=False,
                ) as response,
            ):
                if not response.ok:
                    logger.info("the shim did not take a receipt: %s", await response.text())
        except (TimeoutError, aiohttp.ClientError, OSError, RuntimeError) as error:  # the last: it is closed
            logger.info("a receipt did not reach the shim at %s: %r", self._url, error)


def _from_problem(status: int, problem: Mapping[str, object]) -> CallOutcome:
    detail = str(problem.get("detail") or f"the event platform answered {status}")
    if str(problem.get("type")).endswith(_UNKNOWN):
        because = "the event platform did not confirm the call, and no reply came in time"
        return replace(unknown_outcome(because), lost=True)
    if status == 504:
        return failed_outcome(Reason.TIMEOUT, detail)
    code = problem.get("code")
    if status == 502 and code == 403:
        return failed_outcome(Reason.DENIED, str(problem.get("reason_text") or detail))
    if status == 502 and code in (400, 422):
        return failed_outcome(Reason.INVALID_ARGUMENTS, str(problem.get("reason_text") or detail))
    if problem.get("delivered"):
        # No answer, or 404, at the last attempt: the tool may have been lost at work in an earlier one.
        if str(problem.get("type")).endswith(_DEAD_LETTER) and code in (None, 404):
            return unknown_outcome(detail)
        return failed_outcome(Reason.TOOL_FAILED, detail)
    return failed_outcome(Reason.UNDELIVERABLE, detail)
