"""One tool call as one event: out through the shim, and its reply or its failure back."""

import asyncio
import base64
import logging
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aiohttp
import orjson

from beckon_agent.request_id import request_id
from beckon_contract.events import CloudEvent, EventError, from_http, is_json, to_binary
from beckon_contract.failures import Reason, failure
from beckon_contract.tools import Tool
from beckon_contract.yamltext import NotReadable, check_depth

logger = logging.getLogger(__name__)

_MARGIN = 5.0  # the shim answers at the deadline; only a dead shim is waited for longer
_MAX_REPLY_BYTES = 16 * 1024 * 1024
_TRIES = 4  # where nobody answers at the shim's address; a busy shim is asked as long as there is time
_PAUSE = 0.2
_NO_LIMIT = aiohttp.ClientTimeout(total=None)  # the deadline is ours; aiohttp's own is five minutes


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: the tool's data, or an error object as in `failures`."""

    result: object
    failed: bool = False


def failed(reason: Reason, message: str, **details: object) -> Outcome:
    """Return the outcome of a call that gave no result."""
    return Outcome(failure(reason, message, **details), failed=True)


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to go: its arguments have passed the schema; `wait` is in seconds."""

    id: str
    tool: Tool
    arguments: Mapping[str, object]
    source: str
    wait: float


class _Busy(Exception):
    """The shim takes no more calls just now; nothing was sent. `pause` is in seconds."""

    def __init__(self, pause: float) -> None:
        super().__init__(pause)
        self.pause = pause


class Dispatcher:
    """Sends calls to the shim at `url`; never raises for what a tool or a Broker does."""

    def __init__(
        self, session: aiohttp.ClientSession, url: str, *, max_reply_bytes: int = _MAX_REPLY_BYTES
    ) -> None:
        self._session = session
        self._url = url.rstrip("/")
        self._max_reply_bytes = max_reply_bytes

    async def send(self, call: Call) -> Outcome:
        """Return the outcome of a call, within its `wait` seconds and a small margin."""
        try:
            async with asyncio.timeout(call.wait + _MARGIN):
                return await self._send_until_taken(call)
        except TimeoutError:
            return failed(Reason.TIMEOUT, f"no answer within {call.wait:g} seconds")
        except _Busy:
            return failed(Reason.UNDELIVERABLE, "the event platform is busy; the tool was not called")
        except (aiohttp.ClientConnectorError, aiohttp.InvalidURL) as error:
            self._warn(error)
            return failed(Reason.UNDELIVERABLE, "the event platform does not answer; the tool was not called")
        except (aiohttp.ClientError, OSError) as error:
            self._warn(error)
            lost = "the connection to the event platform was lost; the call may have had its effect"
            return failed(Reason.TOOL_FAILED, lost)

    def _warn(self, error: Exception) -> None:
        told = str(error) or type(error).__name__
        logger.warning("request %s: the shim at %s does not answer: %s", request_id(), self._url, told)

    async def _send_until_taken(self, call: Call) -> Outcome:
        """Post until the shim takes the call; a tool knows a second delivery by the event's id."""
        event = _event(call)
        deadline = time.monotonic() + call.wait
        lost: list[aiohttp.ClientConnectionError] = []
        while True:
            left = deadline - time.monotonic()
            try:
                return await self._post(call, event, left)
            except _Busy as busy:
                pause = busy.pause
                if pause >= left:
                    raise
            except aiohttp.ClientConnectionError as error:
                pause = _PAUSE * 2 ** len(lost)
                lost.append(error)
                if len(lost) == _TRIES or pause >= left:
                    raise _most_doubtful(lost) from None
            await asyncio.sleep(pause)

    async def _post(self, call: Call, event: CloudEvent, wait: float) -> Outcome:
        headers, body = to_binary(event)
        headers += [("prefer", f"wait={wait:.3f}"), ("x-request-id", request_id())]
        address = f"{self._url}/{call.tool.namespace}/{call.tool.broker}"
        # A redirect would turn the POST into a GET.
        async with self._session.post(
            address, data=body, headers=headers, timeout=_NO_LIMIT, allow_redirects=False
        ) as response:
            content = await self._read(response)
            if content is None:
                too_large = f"the tool's reply is larger than {self._max_reply_bytes} bytes"
                return failed(Reason.TOOL_FAILED, too_large)
            if response.status == 200:
                return _from_reply(response.raw_headers, content)
            problem = _problem(content)
            if response.status == 503 and not problem.get("delivered"):
                raise _Busy(_retry_after(response.headers.get("retry-after", "")))
            return _from_problem(response.status, problem)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes | None:
        """Return the body, `None` where it is larger than is good for anybody."""
        content = bytearray()
        async for chunk in response.content.iter_any():
            content += chunk
            if len(content) > self._max_reply_bytes:
                return None
        return bytes(content)


def _most_doubtful(errors: Sequence[aiohttp.ClientConnectionError]) -> aiohttp.ClientConnectionError:
    """Return the error after which the call may have had its effect, if any of several tries had one."""
    return next((one for one in errors if not isinstance(one, aiohttp.ClientConnectorError)), errors[-1])


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


def _retry_after(text: str) -> float:
    return max(float(text), _PAUSE) if text.isdecimal() else _PAUSE


def _from_reply(headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> Outcome:
    """Return what a reply event says: JSON as it is, text as text, other bytes as `Media` of the SDK."""
    try:
        event = from_http(headers, body)
        if event.data is None or is_json(event.datacontenttype):
            result = event.json()
            check_depth(result)  # what cannot be written as JSON again could not be told to anybody
            return Outcome(result, failed=_tells_an_error(result))
    except (EventError, NotReadable) as error:
        return failed(Reason.TOOL_FAILED, f"the tool's reply is not readable: {error}")
    if (event.datacontenttype or "").startswith("text/"):
        return Outcome(event.data.decode(errors="replace"))
    encoded = base64.b64encode(event.data).decode()
    return Outcome({"media_type": event.datacontenttype, "data_base64": encoded})


def _tells_an_error(result: object) -> bool:
    error = result.get("error") if isinstance(result, Mapping) else None
    return isinstance(error, Mapping) and "reason" in error and "message" in error


def _from_problem(status: int, problem: Mapping[str, object]) -> Outcome:
    detail = str(problem.get("detail") or f"the event platform answered {status}")
    if status == 504:
        return failed(Reason.TIMEOUT, detail)
    if problem.get("delivered"):
        return failed(Reason.TOOL_FAILED, detail)
    if status == 502 and problem.get("code") in (400, 422):
        return failed(Reason.INVALID_ARGUMENTS, str(problem.get("reason_text") or detail))
    return failed(Reason.UNDELIVERABLE, detail)


def _problem(body: bytes) -> Mapping[str, object]:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
