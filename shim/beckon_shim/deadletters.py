"""Dead letters: the reason in one, and the wait after one without a reason."""

import asyncio
import base64
import binascii
import re
from urllib.parse import unquote

import orjson

from beckon_runtime.problem import Problem
from beckon_shim.messages import Answer, WireEvent, of_problem
from beckon_shim.waiters import Waiter, Waiters

_DESTINATION = b"ce-knativeerrordest"
_CODE = b"ce-knativeerrorcode"
_DATA = b"ce-knativeerrordata"
_LONGEST = 1024
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]+")
# How Go, Python and Java say that nobody listens: the tool cannot have run.
_NEVER_CONNECTED = re.compile(
    r"connection refused|no such host|connect call failed|cannot connect", re.IGNORECASE
)
# A client error is a refusal, but for these: time-outs, conflicts and busy tools may come half-way.
_NOT_REFUSALS = frozenset((408, 409, 425, 429))


def strip_errors(event: WireEvent) -> None:
    """Take the dead-letter attributes off an event."""
    for name in (_DESTINATION, _CODE, _DATA):
        event.attributes.pop(name, None)


def says_why(event: WireEvent) -> bool:
    """Return True if a dead letter names the destination or the code.

    Those of the default Broker name neither for a Trigger that was just deleted. Such a Trigger goes on for a
    moment: its calls are dead-lettered while another Trigger's tool answers them.
    """
    return bool(event.text(_DESTINATION) or event.text(_CODE))


def undeliverable(event: WireEvent, broker_url: str) -> Answer:
    """Return the 502 answer with the reason of a dead letter.

    Members: `code` (the tool's HTTP status), `destination`, `reason_text`, and `delivered`: false only if it
    is certain that the tool did not run.
    """
    destination = unquote(event.text(_DESTINATION))
    code = _to_status(event.text(_CODE))
    text = decode_error(unquote(event.text(_DATA)))
    reply_failed = bool(destination) and destination.rstrip("/") == broker_url.rstrip("/")
    members: dict[str, object] = {"delivered": reply_failed or not _never_ran(code, text)}
    if code is not None:
        members["code"] = code
    if destination:
        members["destination"] = destination
    if text:
        members["reason_text"] = _short_reason(text)
    if reply_failed:
        detail = "the tool answered, and its reply could not be forwarded"
    else:
        detail = "the Broker could not deliver the event to the tool"
    if code is not None:
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


def _never_ran(code: int | None, text: str) -> bool:
    if code is not None and 400 <= code < 500 and code not in _NOT_REFUSALS:
        return True
    return _NEVER_CONNECTED.search(text) is not None


def _to_status(text: str) -> int | None:
    """Return an HTTP status, or `None` if the text has none.

    RabbitMQ's Broker writes -1 if no answer came.
    """
    try:
        code = int(text)
    except ValueError:
        return None
    return code if 100 <= code < 600 else None


_REMEMBERED = 1024


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
        if len(self._answered) > _REMEMBERED:
            del self._answered[next(iter(self._answered))]

    def note_alive(self, waiter: Waiter) -> None:
        """Take a report or an acceptance as a sign of a working tool."""
        waiter.alive = True
        if waiter.doubted is not None:
            waiter.doubted.cancel()

    def doubt(self, waiter: Waiter, answer: Answer) -> None:
        """Take a dead letter without a reason.

        The caller gets `answer` if no reply comes.
        """
        waiter.doubt = answer
        if waiter.doubted is not None:  # one more deleted Trigger: the first letter's time counts
            return
        if not waiter.alive and waiter.call_type not in self._answered:
            loop = asyncio.get_running_loop()
            waiter.doubted = loop.call_later(self._grace, self._waiters.fail, waiter, answer)
