"""One tool call as one event: out through the shim, and its reply or its failure back."""

import asyncio
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
import orjson
import stamina

from beckon_contract.events import CloudEvent, EventError, from_http, is_json, to_binary
from beckon_contract.failures import Reason, failure
from beckon_contract.tools import Tool

logger = logging.getLogger(__name__)

_MARGIN = 5.0  # the shim answers at the deadline; only a dead shim is waited for longer
_MAX_REPLY_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: the tool's data, or an error object as in `failures`."""

    result: object
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to go: its arguments have passed the schema."""

    id: str
    tool: Tool
    arguments: Mapping[str, object]
    source: str
    wait: float


class _Busy(Exception):
    """The shim takes no more calls just now; nothing was sent."""


class Dispatcher:
    """Sends calls to the shim at `url`; never raises for what a tool or a Broker does."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url.rstrip("/")

    async def send(self, call: Call) -> Outcome:
        """Return the outcome of a call, within its `wait` seconds and a small margin."""
        try:
            async with asyncio.timeout(call.wait + _MARGIN):
                return await self._send_until_taken(call)
        except TimeoutError:
            return _failed(Reason.TIMEOUT, f"no answer within {call.wait:g} seconds")
        except _Busy:
            return _failed(Reason.UNDELIVERABLE, "the platform is busy; try again later")
        except aiohttp.ClientError as error:
            logger.warning("the shim at %s does not answer: %s", self._url, error)
            return _failed(
                Reason.UNDELIVERABLE, "the event platform does not answer; the tool was not called"
            )

    async def _send_until_taken(self, call: Call) -> Outcome:
        refused = (_Busy, aiohttp.ClientConnectorError)
        async for attempt in stamina.retry_context(
            on=refused, attempts=4, timeout=call.wait, wait_initial=0.2
        ):
            with attempt:
                return await self._post(call)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _post(self, call: Call) -> Outcome:
        headers, body = to_binary(_event(call))
        headers.append(("prefer", f"wait={call.wait:g}"))
        address = f"{self._url}/{call.tool.namespace}/{call.tool.broker}"
        async with self._session.post(address, data=body, headers=headers) as response:
            content = await _read(response)
            if content is None:
                return _failed(Reason.TOOL_FAILED, f"the reply is larger than {_MAX_REPLY_BYTES} bytes")
            if response.status == 200:
                return _from_reply(response.raw_headers, content)
            problem = _problem(content)
            if response.status == 503 and not problem.get("delivered"):
                raise _Busy
            return _from_problem(response.status, problem)


async def _read(response: aiohttp.ClientResponse) -> bytes | None:
    """Return the body, `None` where it is larger than is good for anybody."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > _MAX_REPLY_BYTES:
            return None
    return bytes(content)


def _event(call: Call) -> CloudEvent:
    trace = f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01"
    return CloudEvent(
        id=call.id,
        source=call.tool.source or call.source,
        type=call.tool.type,
        datacontenttype="application/json",
        data=orjson.dumps(call.arguments),
        extensions={"traceparent": trace},
    )


def _from_reply(headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> Outcome:
    try:
        event = from_http(headers, body)
        if event.data is None or is_json(event.datacontenttype):
            result = event.json()
            return Outcome(result, failed=_tells_an_error(result))
    except EventError as error:
        return _failed(Reason.TOOL_FAILED, f"the reply is not readable: {error}")
    if (event.datacontenttype or "").startswith("text/"):
        return Outcome(event.data.decode(errors="replace"))
    return Outcome({"media_type": event.datacontenttype, "size": len(event.data)})


def _tells_an_error(result: object) -> bool:
    error = result.get("error") if isinstance(result, Mapping) else None
    return isinstance(error, Mapping) and "reason" in error and "message" in error


def _from_problem(status: int, problem: Mapping[str, object]) -> Outcome:
    detail = str(problem.get("detail") or f"the event platform answered {status}")
    if status == 504:
        return _failed(Reason.TIMEOUT, detail)
    if status != 502:
        return _failed(Reason.UNDELIVERABLE, detail)
    if problem.get("code") in (400, 422):
        return _failed(Reason.INVALID_ARGUMENTS, str(problem.get("reason_text") or detail))
    return _failed(Reason.TOOL_FAILED if problem.get("delivered") else Reason.UNDELIVERABLE, detail)


def _problem(body: bytes) -> Mapping[str, object]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _failed(reason: Reason, message: str) -> Outcome:
    return Outcome(failure(reason, message), failed=True)
