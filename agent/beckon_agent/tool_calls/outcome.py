"""A tool call as an event, and its outcome for the run and for the model.

Results are data for the model, bounded in length, and never instructions of the agent.
"""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import aiohttp
import orjson

from beckon_agent.core.run_types import current_attributes, reported_cost
from beckon_agent.telemetry.tool_spans import trace_members
from beckon_agent.tool_calls.recorded_events import record_reply
from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http
from beckon_contract.cloudevents.extensions import INPUT, INPUT_REQUIRED, STATE, is_acceptance, is_json
from beckon_contract.failures import Reason, failure
from beckon_contract.inputs import InputAnswer, InputRequest, InvalidInput
from beckon_contract.jsontext import dumps
from beckon_contract.resources.tools import ORIGIN_ATTRIBUTE, CallOrigin, Tool
from beckon_contract.retry_after import read_retry_after
from beckon_contract.yamltext import NotReadable, check_depth
from beckon_runtime.tracing import MEMBERS

MAX_REPLY_BYTES = 16 * 1024 * 1024
# The deadline is ours; aiohttp's own is five minutes. But the IP of a Pod that is gone never answers.
PATIENCE = aiohttp.ClientTimeout(total=None, sock_connect=2)
# After these nothing was sent, so the tool has not run.
NEVER_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
RawHeaders = tuple[tuple[bytes, bytes], ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The outcome of a call: a result, an error, or neither yet.

    `result` is the tool's data, or an error object as in `failures`. `later` is True if the tool has taken
    the call, and answers by an event for which no connection waits. `lost` is True if the call was posted
    and its reply may come by such an event, but nothing confirms that the tool has it. `tokens` is the cost
    of the call by its reply. `input` is the form that the tool puts to a person before it goes on.
    """

    result: object
    failed: bool = False
    later: bool = False
    tokens: int = 0
    lost: bool = False
    input: InputRequest | None = None


def failed_outcome(reason: Reason, message: str, **details: object) -> CallOutcome:
    """Return the outcome of a call without a result."""
    return CallOutcome(failure(reason, message, **details), failed=True)


def unknown_outcome(message: str) -> CallOutcome:
    """Return the outcome of a call with an unknown effect.

    The tool may have run; `message` says why that is not known.
    """
    advice = "find out whether it did before you call it again: a second call may have its effect twice"
    return failed_outcome(Reason.OUTCOME_UNKNOWN, f"{message}. The tool may have run; {advice}")


@dataclass(frozen=True, slots=True)
class OutgoingCall:
    """A validated call, ready to send; `wait` is in seconds.

    Its arguments have passed the schema. With `may_be_late` its outcome may be that the answer comes later.
    `answer` is a person's answer to the form of an earlier event of the call.
    """

    id: str
    tool: Tool
    arguments: Mapping[str, object]
    source: str
    wait: float
    may_be_late: bool = False
    origin: CallOrigin = "api"
    answer: InputAnswer | None = None

    @property
    def may_be_repeated(self) -> bool:
        """True if it may be posted again after an unknown outcome."""
        return is_repeatable(self.tool)


def is_repeatable(tool: Tool) -> bool:
    """True if a second delivery of a tool's call does no harm."""
    return tool.idempotent or tool.read_only


def call_event(call: OutgoingCall) -> CloudEvent:
    """Return the event of a call. A tool recognises a second delivery by the event's id."""
    answered = {} if call.answer is None else {INPUT: call.answer.to_attribute()}
    return CloudEvent(
        id=call.id,
        source=call.tool.source or call.source,
        type=call.tool.type,
        datacontenttype="application/json",
        data=orjson.dumps(call.arguments),
        extensions={**trace_members(), **current_attributes(), ORIGIN_ATTRIBUTE: call.origin, **answered},
    )


def trace_headers(event: CloudEvent) -> list[tuple[str, str]]:
    """Return the trace headers of the request with an event.

    With them, everything that forwards the request joins its trace.
    """
    return [(name, str(event.extensions[name])) for name in MEMBERS if name in event.extensions]


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """Return the body of an answer, `None` above `limit` bytes."""
    content = bytearray()
    async for chunk in response.content.iter_any():
        content += chunk
        if len(content) > limit:
            return None
    return bytes(content)


def too_large(limit: int) -> CallOutcome:
    """Return the outcome of a call with too large a reply. Such a reply is not read to its end."""
    return failed_outcome(Reason.TOOL_FAILED, f"the tool's reply is larger than {limit} bytes")


def from_reply(headers: RawHeaders, body: bytes) -> CallOutcome:
    """Return the outcome in a reply.

    JSON stays JSON, text is text, and other bytes are `Media` of the SDK. A reply that is not readable, or
    that announces a later answer, gives a failure.
    """
    try:
        event = from_http(headers, body)
    except EventError as error:
        return failed_outcome(Reason.TOOL_FAILED, f"the tool's reply is not readable: {error}")
    record_reply(event)
    return _too_late() if is_acceptance(event.extensions) else from_event(event)


def from_event(event: CloudEvent) -> CallOutcome:
    """Return the outcome in a reply event, with its cost."""
    return replace(_from_failure_event(event), tokens=reported_cost(event))


def _from_failure_event(event: CloudEvent) -> CallOutcome:
    if event.extensions.get(STATE) == INPUT_REQUIRED:
        return _input_outcome(event)
    try:
        if event.data is None or is_json(event.datacontenttype):
            return from_json(event.json())
    except (EventError, NotReadable) as error:
        return failed_outcome(Reason.TOOL_FAILED, f"the tool's reply is not readable: {error}")
    if (event.datacontenttype or "").startswith("text/"):
        return CallOutcome(event.data.decode(errors="replace"))
    encoded = base64.b64encode(event.data).decode()
    return CallOutcome({"media_type": event.datacontenttype, "data_base64": encoded})


def _input_outcome(event: CloudEvent) -> CallOutcome:
    try:
        check_depth(document := event.json())
        return CallOutcome(None, input=InputRequest.from_document(document))
    except (EventError, NotReadable, InvalidInput) as error:
        message = f"the tool requests input of a person, but its form cannot be shown: {error}"
        return failed_outcome(Reason.TOOL_FAILED, message)


def _too_late() -> CallOutcome:
    message = (
        "the tool has taken the call and answers later; it has to be called through a Broker for that, "
        "in a conversation that is stored"
    )
    return failed_outcome(Reason.TIMEOUT, message)


def from_json(result: object) -> CallOutcome:
    """Return the outcome in a JSON reply, a tool's own failure included.

    Raises `NotReadable` if it is nested too deeply.
    """
    check_depth(result)  # a value that cannot be written as JSON again could not be sent
    return CallOutcome(result, failed=is_failure(result))


def is_failure(result: object) -> bool:
    """True if a result is an error object as in `failures`."""
    error = result.get("error") if isinstance(result, Mapping) else None
    return isinstance(error, Mapping) and "reason" in error and "message" in error


def problem_in(body: bytes) -> Mapping[str, object]:
    """Return the members of a problem document, none without such a document."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


_BINARY_KEY = "data_base64"


def result_for_model(result: object, limit: int) -> str:
    """Return a result as the text of a tool message, cut at `limit` characters with a note.

    Base64 data is replaced by its size: no model reads it, and it would fill the context.
    """
    shown = _without_binary(result)
    text = shown if isinstance(shown, str) else dumps(shown).decode()
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: the result has {len(text)} characters, the first {limit} are shown]"


def _without_binary(value: object) -> object:
    if isinstance(value, list):
        return [_without_binary(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    shown = {key: _without_binary(item) for key, item in value.items() if key != _BINARY_KEY}
    encoded = value.get(_BINARY_KEY)
    if isinstance(encoded, str):
        shown["note"] = f"{len(encoded) * 3 // 4} bytes of data, left out here"
    return shown


MAX_TRIES = 4  # where no server answers at an address; a busy one is tried until the deadline
_PAUSE = 0.2


class NotAccepted(Exception):
    """The call was not accepted now, and nothing ran.

    `pause` is the wait before the next try in seconds, `detail` says why.
    """

    def __init__(self, pause: float, detail: str) -> None:
        super().__init__(detail)
        self.pause = pause
        self.detail = detail


async def retry_until_accepted(
    post: Callable[[float], Awaitable[CallOutcome]],
    wait: float,
    again: Callable[[aiohttp.ClientConnectionError], bool],
    *,
    tries: int = MAX_TRIES,
) -> CallOutcome:
    """Post until the call is accepted, within `wait` seconds.

    `post` receives the seconds left. `again` says whether a post may be repeated after such a connection
    error, `tries` is the number of connection errors at which it gives up. Raises the error of the last
    post, or the error after which the call may have had its effect, if there was one.
    """
    deadline = time.monotonic() + wait
    lost: list[aiohttp.ClientConnectionError] = []
    while True:
        try:
            return await post(deadline - time.monotonic())
        except NotAccepted as busy:
            pause = busy.pause
            if pause >= deadline - time.monotonic():
                # What was lost before may have had its effect, and must not be reported as never called.
                raise next(filter(_is_doubtful, lost), busy) from None
        except aiohttp.ClientConnectionError as error:
            pause = _PAUSE * 2 ** len(lost)
            lost.append(error)
            in_time = pause < deadline - time.monotonic()
            if len(lost) == tries or not in_time or not again(error):
                raise _most_doubtful(lost) from None
        await asyncio.sleep(pause)


def _most_doubtful(errors: Sequence[aiohttp.ClientConnectionError]) -> aiohttp.ClientConnectionError:
    """Return the error after a possible effect of the call, if any.

    Else it is the last error of the tries.
    """
    return next(filter(_is_doubtful, errors), errors[-1])


def _is_doubtful(error: aiohttp.ClientConnectionError) -> bool:
    return not isinstance(error, NEVER_CONNECTED)


def pause_before_retry(retry_after: str) -> float:
    """Return the seconds to wait by a Retry-After header.

    Without one, and at least, that is a short pause.
    """
    return max(read_retry_after(retry_after) or 0.0, _PAUSE)
