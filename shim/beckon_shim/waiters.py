"""The waiting calls: the first answer to each counts, and a dead letter may end one.

The caller of `open` limits the number of waiting calls. A dead letter without a reason ends a call after
a wait.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from urllib.parse import unquote

import orjson

from beckon_contract.cloudevents.extensions import NOT_BEGUN, OBSERVER
from beckon_runtime.http_messages import Answer, Finish, of_problem
from beckon_runtime.posts import Ack, RawHeader
from beckon_runtime.problem import Problem
from beckon_shim.messages import WireEvent

_REMEMBERED = 8192
_NOT_POSTED = Ack(0, "no connection to it could be opened in time", sent=False)


class WaiterState(Enum):
    """The state of a call, as far as it is remembered."""

    WAITING = auto()
    ANSWERED = auto()
    ABANDONED = auto()
    UNKNOWN = auto()


@dataclass(slots=True, eq=False)
class Waiter:
    """One call, with the callback for its answer and its state.

    With `takes_later` its caller accepts the tool's acceptance as an answer; `hear` is set if it wants
    reports of progress. `doubt` is the answer if no reply comes in time after a dead letter without a reason.
    `refusal` says why the Broker does not have the event, `None` once it may have it; `uncertain` is the
    acknowledgement after which it may have it. `again` is the timer of the next post. `receipt` is the header
    that goes with the reply to a caller that confirms it. `reply_attribute` is the header of the attribute by
    which the reply names the call, empty for the usual ones.
    """

    nonce: str
    call_id: bytes
    call_type: bytes
    broker_url: str
    respond: Finish
    takes_later: bool = False
    hear: Callable[[WireEvent], None] | None = None
    timer: asyncio.TimerHandle | None = None
    alive: bool = False
    doubt: Answer | None = None
    doubted: asyncio.TimerHandle | None = None
    refusal: Ack | None = _NOT_POSTED
    uncertain: Ack | None = None
    again: asyncio.TimerHandle | None = None
    receipt: RawHeader | None = None
    reply_attribute: bytes = b""


class Waiters:
    """The table of waiting calls by the nonce of their token.

    An ended call is remembered for a while (8,192 to 16,384 calls), to distinguish a second reply from a late
    one.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, Waiter] = {}
        self._named: dict[bytes, dict[bytes, str]] = {}
        self._ended: dict[str, bytes | None] = {}
        self._ended_before: dict[str, bytes | None] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self, waiter: Waiter) -> None:
        """Put a new call into the table."""
        self._waiting[waiter.nonce] = waiter
        if waiter.reply_attribute:
            self._named.setdefault(waiter.reply_attribute, {})[waiter.call_id] = waiter.nonce
        self._idle.clear()

    def get(self, nonce: str) -> Waiter | None:
        """Return the waiting call of this nonce, if any."""
        return self._waiting.get(nonce)

    def find_by_id(self, attributes: Mapping[bytes, bytes]) -> tuple[str, bytes] | None:
        """Return the nonce of the call whose id is in its own reply attribute, and that attribute."""
        for name, calls in self._named.items():
            nonce = calls.get(attributes.get(name, b""))
            if nonce is not None:
                return nonce, name
        return None

    def reply(self, nonce: str, answer: Answer) -> WaiterState:
        """Answer a call with its tool's reply; return its previous state.

        A reply that comes again before the caller has confirmed it counts as late.
        """
        waiter = self._waiting.pop(nonce, None)
        if waiter is None:
            return self.state(nonce)
        self._end(waiter, answer)
        self._remember(nonce, None if waiter.receipt is None else waiter.call_id)
        return WaiterState.WAITING

    def accept(self, nonce: str, answer: Answer) -> WaiterState:
        """Answer a call with the tool's acceptance; return its previous state.

        A caller without `takes_later` goes on waiting.
        """
        waiter = self._waiting.get(nonce)
        if waiter is None:
            return self.state(nonce)
        if waiter.takes_later:
            self.fail(waiter, answer)  # the answer is yet to come, and has no caller any more
        return WaiterState.WAITING

    def settle(self, nonce: str) -> None:
        """Remember a call as answered; further replies are duplicates."""
        self._remember(nonce, None)

    def fail(self, waiter: Waiter, answer: Answer) -> bool:
        """Answer a call without its reply; return True if it was waiting."""
        if self._waiting.pop(waiter.nonce, None) is None:
            return False
        self._end(waiter, answer)
        self._remember(waiter.nonce, waiter.call_id)
        return True

    def fail_all(self, answer: Callable[[Waiter], Answer]) -> int:
        """Answer every waiting call with a failure; return their number."""
        return sum(self.fail(waiter, answer(waiter)) for waiter in list(self._waiting.values()))

    def abandoned_call(self, nonce: str) -> bytes | None:
        """Return the id of a remembered call ended without a reply."""
        return self._ended.get(nonce) or self._ended_before.get(nonce)

    async def idle(self) -> None:
        """Wait until no call waits."""
        await self._idle.wait()

    def state(self, nonce: str) -> WaiterState:
        """Return the outcome of a call no longer waiting."""
        for ended in (self._ended, self._ended_before):
            if nonce in ended:
                return WaiterState.ANSWERED if ended[nonce] is None else WaiterState.ABANDONED
        return WaiterState.UNKNOWN

    def _end(self, waiter: Waiter, answer: Answer) -> None:
        for timer in (waiter.timer, waiter.doubted, waiter.again):
            if timer is not None:
                timer.cancel()
        if waiter.reply_attribute:
            self._forget_name(waiter)
        if not self._waiting:
            self._idle.set()
        waiter.respond(answer)

    def _forget_name(self, waiter: Waiter) -> None:
        calls = self._named[waiter.reply_attribute]
        if calls.get(waiter.call_id) == waiter.nonce:  # another call may have the same id by now
            del calls[waiter.call_id]
        if not calls:
            del self._named[waiter.reply_attribute]

    def _remember(self, nonce: str, call_id: bytes | None) -> None:
        self._ended[nonce] = call_id
        if len(self._ended) >= _REMEMBERED:
            self._ended_before, self._ended = self._ended, {}


_DESTINATION = b"ce-knativeerrordest"
_CODE = b"ce-knativeerrorcode"
_DATA = b"ce-knativeerrordata"
_LONGEST = 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
NOT_BEGUN_HEADER = b"ce-" + NOT_BEGUN.encode()
_OBSERVER = b"ce-" + OBSERVER.encode()
# Brokers of Knative begin the data so, and give the code 500, if no HTTP answer came.
_NO_ANSWER = "dispatch error: "


def strip_errors(event: WireEvent) -> None:
    """Take the dead-letter attributes off an event."""
    for name in (_DESTINATION, _CODE, _DATA, NOT_BEGUN_HEADER, _OBSERVER):
        event.attributes.pop(name, None)


def is_of_observer(event: WireEvent) -> bool:
    """Return True if a dead letter says that another Trigger's subscriber answers the call."""
    return event.text(_OBSERVER) == "true"


def says_why(event: WireEvent) -> bool:
    """Return True if a dead letter names the destination or the code.

    Those of the default Broker name neither for a Trigger that was just deleted. Such a Trigger goes on for a
    moment: its calls are dead-lettered while another Trigger's tool answers them.
    """
    return bool(event.text(_DESTINATION) or event.text(_CODE))


def undeliverable(event: WireEvent, broker_url: str) -> Answer:
    """Return the 502 answer with the reason of a dead letter.

    Members: `code` (the tool's HTTP status), `destination`, `reason_text`, and `delivered`: false only if the
    Broker says that no attempt began. The other attributes are about the last attempt, and the tool may have
    died at work in an earlier one.
    """
    destination = unquote(event.text(_DESTINATION))
    code = _to_status(event.text(_CODE))
    text = decode_error(unquote(event.text(_DATA)))
    reply_failed = bool(destination) and destination.rstrip("/") == broker_url.rstrip("/")
    answered = not reply_failed and not text.startswith(_NO_ANSWER)
    members: dict[str, object] = {"delivered": reply_failed or event.text(NOT_BEGUN_HEADER) != "true"}
    if code is not None and answered:
        members["code"] = code
    if destination:
        members["destination"] = destination
    if text:
        members["reason_text"] = _short_reason(text)
    if reply_failed:
        detail = "the tool answered, and its reply could not be forwarded"
    else:
        detail = "the Broker could not deliver the event to the tool"
    if code is not None and (answered or reply_failed):
        detail += f" (HTTP status {code})"
    if text:
        detail += f": {_short_reason(text)}"
    return of_problem(Problem(502, "undeliverable", "Undeliverable", detail, members), "undeliverable")


def decode_error(data: str) -> str:
    """Return the text in `knativeerrordata`, even if cut or not encoded."""
    compact = data.strip().rstrip("=")
    try:
        raw = base64.b64decode(compact[: len(compact) // 4 * 4] + _tail(compact), validate=True)
    except (binascii.Error, ValueError):
        return _CONTROL.sub(" ", data)[:_LONGEST]
    return _CONTROL.sub(" ", raw.decode(errors="replace"))[:_LONGEST]


def _tail(compact: str) -> str:
    """Return the last, incomplete group padded; a single character holds no byte and is dropped."""
    rest = compact[len(compact) // 4 * 4 :]
    return rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""


def _short_reason(text: str) -> str:
    """Return the detail or title of a problem document, else the text."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text.strip()
    if not isinstance(document, dict):
        return text.strip()
    for member in ("detail", "title"):
        value = document.get(member)
        if isinstance(value, str) and value:
            return value
    return text.strip()


def _to_status(text: str) -> int | None:
    """Return an HTTP status, or `None` if the text has none.

    RabbitMQ's Broker writes -1 if no answer came.
    """
    try:
        code = int(text)
    except ValueError:
        return None
    return code if 100 <= code < 600 else None


_REMEMBERED_LETTERS = 1024


class AmbiguousDeadLetters:
    """Decides how long a doubted call waits.

    It waits `grace` seconds, or to its deadline if something answers such calls: its type has been answered
    here before, or its tool shows that it is at work, by a report or by accepting the call for a later
    answer.
    """

    def __init__(self, waiters: Waiters, grace: float) -> None:
        self._waiters = waiters
        self._grace = grace
        self._answered: dict[bytes, None] = {}

    def note_answered(self, waiter: Waiter) -> None:
        """Remember a call type with an answering tool; the latest 1,024 count."""
        self._answered.pop(waiter.call_type, None)
        self._answered[waiter.call_type] = None
        if len(self._answered) > _REMEMBERED_LETTERS:
            del self._answered[next(iter(self._answered))]

    def note_alive(self, waiter: Waiter) -> None:
        """Take a report or an acceptance as a sign of a working tool."""
        waiter.alive = True
        if waiter.doubted is not None:
            waiter.doubted.cancel()

    def doubt(self, waiter: Waiter, answer: Answer) -> None:
        """Take a dead letter without a reason. The caller gets `answer` if no reply comes."""
        waiter.doubt = answer
        if waiter.doubted is not None:  # one more deleted Trigger: the first letter's time counts
            return
        if not waiter.alive and waiter.call_type not in self._answered:
            loop = asyncio.get_running_loop()
            waiter.doubted = loop.call_later(self._grace, self._waiters.fail, waiter, answer)
