"""One tool call and what it came to, whichever way it takes: as an event out, as a result back."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace

import aiohttp
import orjson

from beckon_agent.calling.exchanged import note_reply
from beckon_agent.chain import carried, cost
from beckon_agent.telemetry.calls import joined
from beckon_contract.acceptance import is_acceptance
from beckon_contract.events import CloudEvent, EventError, from_http
from beckon_contract.failures import Reason, failure
from beckon_contract.media_types import is_json
from beckon_contract.tools import ORIGIN_ATTRIBUTE, CallOrigin, Tool
from beckon_contract.tracing import MEMBERS
from beckon_contract.yamltext import NotReadable, check_depth

MAX_REPLY_BYTES = 16 * 1024 * 1024
# The deadline is ours; aiohttp's own is five minutes. But the IP of a Pod that is gone never answers.
PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=2)
# After these nothing was sent, so the tool has not run.
NEVER_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
RawHeaders = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call came to: the tool's data, or an error object as in `failures`; or neither, yet.

    `later` is whether the tool has taken the call, and answers by an event that no connection waits for;
    `lost` is whether the call was posted and its reply may come so, though nothing says that the tool has
    it. `tokens` are those that the reply says it cost.
    """

    result: object
    failed: bool = False
    later: bool = False
    tokens: int = 0
    lost: bool = False


def failed(reason: Reason, message: str, **details: object) -> Outcome:
    """Return the outcome of a call that gave no result."""
    return Outcome(failure(reason, message, **details), failed=True)


def unknown(message: str) -> Outcome:
    """Return the outcome of a call that may have run; the message says why that is not known."""
    advice = "find out whether it did before you call it again: a second call may have its effect twice"
    return failed(Reason.OUTCOME_UNKNOWN, f"{message}. The tool may have run; {advice}")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is ready to go: its arguments have passed the schema; `wait` is in seconds.

    With `may_be_late` its outcome may be that the answer comes later.
    """

    id: str
    tool: Tool
    arguments: Mapping[str, object]
    source: str
    wait: float
    may_be_late: bool = False
    origin: CallOrigin = "api"

    @property
    def repeatable(self) -> bool:
        """Whether it may be posted again where its outcome is unknown."""
        return is_repeatable(self.tool)


def is_repeatable(tool: Tool) -> bool:
    """Whether a second delivery of one call of a tool does no harm."""
    return tool.idempotent or tool.read_only


def call_event(call: Call) -> CloudEvent:
    """Return the event of a call; a tool knows a second delivery by its id."""
    return CloudEvent(
        id=call.id,
        source=call.tool.source or call.source,
        type=call.tool.type,
        datacontenttype="application/json",
        data=orjson.dumps(call.arguments),
        extensions={**joined(), **carried(), ORIGIN_ATTRIBUTE: call.origin},
    )


def trace_headers(event: CloudEvent) -> list[tuple[str, str]]:
    """Return the headers of the request that carries an event, so that who passes it on joins its trace."""
    return [(name, str(event.extensions[name])) for name in MEMBERS if name in event.extensions]


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """Return the body of an answer, `None` where it is larger than is good for anybody."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > limit:
            return None
    return bytes(content)


def too_large(limit: int) -> Outcome:
    """Return the outcome of a call whose reply was not read to its end."""
    return failed(Reason.TOOL_FAILED, f"the tool's reply is larger than {limit} bytes")


def from_reply(headers: RawHeaders, body: bytes) -> Outcome:
    """Return what a reply says: JSON as it is, text as text, other bytes as `Media` of the SDK."""
    try:
        event = from_http(headers, body)
    except EventError as error:
        return failed(Reason.TOOL_FAILED, f"the tool's reply is not readable: {error}")
    note_reply(event)
    return _too_late() if is_acceptance(event.extensions) else from_event(event)


def from_event(event: CloudEvent) -> Outcome:
    """Return what a reply says that has been read, and what it cost."""
    return replace(_told(event), tokens=cost(event))


def _told(event: CloudEvent) -> Outcome:
    try:
        if event.data is None or is_json(event.datacontenttype):
            return from_json(event.json())
    except (EventError, NotReadable) as error:
        return failed(Reason.TOOL_FAILED, f"the tool's reply is not readable: {error}")
    if (event.datacontenttype or "").startswith("text/"):
        return Outcome(event.data.decode(errors="replace"))
    encoded = base64.b64encode(event.data).decode()
    return Outcome({"media_type": event.datacontenttype, "data_base64": encoded})


def _too_late() -> Outcome:
    message = (
        "the tool has taken the call and answers later; it has to be called through a Broker for that, "
        "in a conversation that is stored"
    )
    return failed(Reason.TIMEOUT, message)


def from_json(result: object) -> Outcome:
    """Return what JSON says, a tool's own failure included; raise `NotReadable` where it is too deep."""
    check_depth(result)  # what cannot be written as JSON again could not be told to anybody
    return Outcome(result, failed=is_failure(result))


def is_failure(result: object) -> bool:
    """Whether a result is an error object as in `failures`."""
    error = result.get("error") if isinstance(result, Mapping) else None
    return isinstance(error, Mapping) and "reason" in error and "message" in error


def problem_in(body: bytes) -> Mapping[str, object]:
    """Return the members of a problem document, none where there is no such."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
