"""The usual way of a call: through the shim to the Broker, and the tool's reply back."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import aiohttp

from beckon_agent.calling.exchange import (
    NEVER_CONNECTED,
    PATIENCE,
    Call,
    Outcome,
    call_event,
    failed,
    from_reply,
    problem_in,
    too_large,
    trace_headers,
    unknown,
)
from beckon_agent.calling.exchanged import note_call, note_problem, note_receipt
from beckon_agent.calling.patience import Busy, retry_after, until_taken
from beckon_agent.calling.reports import Latest, listener
from beckon_agent.calling.shim_answer import EVENT_STREAM, RECEIPT, ShimAnswer, read_answer
from beckon_agent.reply_keys import ReplyKeys
from beckon_agent.request_id import request_id
from beckon_contract.events import CloudEvent, to_binary
from beckon_contract.failures import Reason

_MARGIN = 5.0  # the shim answers at the deadline; only a dead shim is waited for longer

_RECEIPT_SECONDS = 3.0  # the shim waits no longer
_WITH_RECEIPT = (200, 202)

_TRIES = 6  # six seconds: a shim that was killed is started again within them
_UNKNOWN, _DEAD_LETTER = "/outcome-unknown", "/undeliverable"  # the ends of the types of problems

logger = logging.getLogger(__name__)


class ThroughShim:
    """Sends calls to the shim at `url`; never raises for what a tool or a Broker does."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, max_reply_bytes: int, keys: ReplyKeys | None = None
    ) -> None:
        """`keys` sign the calls; a shim takes calls without a signature only where it is open."""
        self._session = session
        self._url = url.rstrip("/")
        self._max_reply_bytes = max_reply_bytes
        self._keys = keys or ReplyKeys()
        self._receipts: set[asyncio.Task[None]] = set()

    async def send(self, call: Call) -> Outcome:
        """Return the outcome of a call, within its `wait` seconds and a small margin."""
        event = call_event(call)
        note_call(event)
        try:
            async with asyncio.timeout(call.wait + _MARGIN):
                return await until_taken(
                    lambda left: self._post(call, event, left),
                    call.wait,
                    lambda error: call.repeatable or isinstance(error, NEVER_CONNECTED),
                    tries=_TRIES,
                )
        except Busy as busy:
            because = f": {busy.detail}" if busy.detail else ""
            return failed(
                Reason.UNDELIVERABLE, f"the event platform is busy; the tool was not called{because}"
            )
        except NEVER_CONNECTED as error:
            self._warn(error)
            return failed(Reason.UNDELIVERABLE, "the event platform does not answer; the tool was not called")
        except TimeoutError:
            return failed(Reason.TIMEOUT, f"no answer within {call.wait:g} seconds")
        except (aiohttp.ClientError, OSError) as error:
            self._warn(error)
            return replace(unknown("the connection to the event platform was lost"), lost=True)

    def _warn(self, error: Exception) -> None:
        told = str(error) or type(error).__name__
        logger.warning("request %s: the shim at %s does not answer: %s", request_id(), self._url, told)

    async def _post(self, call: Call, event: CloudEvent, wait: float) -> Outcome:
        headers, body = to_binary(event)
        path = f"/{call.tool.namespace}/{call.tool.broker}"
        credential = self._keys.sign(path, [(name.encode(), value.encode()) for name, value in headers], body)
        if credential is not None:
            headers.append(("authorization", credential))
        prefer = f"respond-async, wait={wait:.3f}" if call.may_be_late else f"wait={wait:.3f}"
        headers += [("prefer", prefer), ("x-request-id", request_id()), *trace_headers(event)]
        if call.repeatable:
            headers.append(("beckon-idempotent", "true"))
        if call.may_be_late:
            headers.append((RECEIPT, "true"))
        hear = listener()
        if hear is not None:
            headers.append(("accept", f"*/*, {EVENT_STREAM}"))
        # A redirect would turn the POST into a GET.
        async with self._session.post(
            self._url + path, data=body, headers=headers, timeout=PATIENCE, allow_redirects=False
        ) as response:
            answer = await read_answer(response, Latest(hear) if hear else None, self._max_reply_bytes)
        return self._outcome(call, answer)

    def _outcome(self, call: Call, answer: ShimAnswer) -> Outcome:
        """Return what an answer says; raises `Busy`."""
        if answer.receipt and answer.status in _WITH_RECEIPT:
            note_receipt(partial(self._confirm, answer.receipt))
        if answer.content is None:
            return too_large(self._max_reply_bytes)
        if answer.status == 200:
            return from_reply(answer.headers, answer.content)
        if answer.status == 202 and call.may_be_late:
            return Outcome(None, later=True)
        problem = problem_in(answer.content)
        note_problem(problem)
        if answer.status == 503 and not problem.get("delivered"):
            raise Busy(retry_after(answer.pause), str(problem.get("detail") or ""))
        return _from_problem(answer.status, problem)

    def _confirm(self, path: str) -> None:
        """Tell the shim that a reply is stored; where that does not arrive, the reply comes again."""
        task = asyncio.create_task(self._post_receipt(path))
        self._receipts.add(task)
        task.add_done_callback(self._receipts.discard)

    async def _post_receipt(self, path: str) -> None:
        credential = self._keys.sign(path, (), b"")
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


def _from_problem(status: int, problem: Mapping[str, object]) -> Outcome:
    detail = str(problem.get("detail") or f"the event platform answered {status}")
    if str(problem.get("type")).endswith(_UNKNOWN):
        because = "the event platform did not confirm the call, and no reply came in time"
        return replace(unknown(because), lost=True)
    if status == 504:
        return failed(Reason.TIMEOUT, detail)
    if problem.get("delivered"):
        if str(problem.get("type")).endswith(_DEAD_LETTER) and "code" not in problem:
            return unknown(detail)  # the Broker does not say that the tool answered, nor what
        return failed(Reason.TOOL_FAILED, detail)
    if status == 502 and problem.get("code") == 403:
        return failed(Reason.DENIED, str(problem.get("reason_text") or detail))
    if status == 502 and problem.get("code") in (400, 422):
        return failed(Reason.INVALID_ARGUMENTS, str(problem.get("reason_text") or detail))
    return failed(Reason.UNDELIVERABLE, detail)
