"""What the shim answers to a call: whole, or as a stream from the tool's first report on."""

from contextlib import aclosing
from dataclasses import dataclass

import aiohttp

from beckon_agent.calling.exchange import RawHeaders, read_body
from beckon_agent.calling.reports import Hear, read
from beckon_agent.model.framing import Payload, UnreadableAnswer, payloads
from beckon_agent.model.wire import mapping
from beckon_contract.events import STRUCTURED_TYPE, EventError, from_structured

EVENT_STREAM = "text/event-stream"
RECEIPT = "beckon-receipt"
"""The header by which a caller says that it confirms replies, and an answer says at which path."""

_STRUCTURED: RawHeaders = ((b"content-type", STRUCTURED_TYPE.encode()),)
_STATUS = {"reply": 200, "accepted": 202}


@dataclass(frozen=True, slots=True)
class ShimAnswer:
    """The answer in the end; `content` is `None` where it is larger than is good for anybody.

    `pause` is the text of its Retry-After header; `receipt` is the path at which a stored reply is confirmed.
    """

    status: int
    headers: RawHeaders
    content: bytes | None
    pause: str = ""
    receipt: str = ""


async def read_answer(response: aiohttp.ClientResponse, hear: Hear | None, limit: int) -> ShimAnswer:
    """Return the answer, and let the reports before it be heard; raises what aiohttp raises."""
    receipt = response.headers.get(RECEIPT, "")
    if hear is not None and response.content_type == EVENT_STREAM:
        return _ended(await _last(response, hear), limit, receipt)
    content = await read_body(response, limit)
    pause = response.headers.get("retry-after", "")
    return ShimAnswer(response.status, response.raw_headers, content, pause, receipt)


def _ended(last: Payload, limit: int, receipt: str) -> ShimAnswer:
    content = last.text if len(last.text) <= limit else None
    status = _STATUS.get(last.event) or mapping(last.data).get("status")
    return ShimAnswer(status if isinstance(status, int) else 502, _STRUCTURED, content, receipt=receipt)


async def _last(response: aiohttp.ClientResponse, hear: Hear) -> Payload:
    """Read to the end, so that the connection can serve again; return what the stream ended with."""
    last: Payload | None = None
    try:
        async with aclosing(payloads(response.content.iter_any())) as told:
            async for payload in told:
                if payload.event == "progress":
                    _report(payload, hear)
                else:
                    last = payload
    except (aiohttp.ClientPayloadError, UnreadableAnswer) as error:
        raise aiohttp.ServerDisconnectedError(f"its stream broke: {error}") from error
    if last is None:
        raise aiohttp.ServerDisconnectedError("its stream ended before the answer")
    return last


def _report(payload: Payload, hear: Hear) -> None:
    try:
        report = read(from_structured(payload.text))
    except EventError:
        return
    if report is not None:
        hear(report)
