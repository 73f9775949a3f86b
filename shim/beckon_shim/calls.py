"""The callers' side: an event comes in, goes to its Broker, and its reply is the answer."""

import asyncio
import logging
import time
from dataclasses import dataclass
from functools import partial

from beckon_contract.cloudevents.events import EventError
from beckon_contract.cloudevents.extensions import (
    ANY,
    IDEMPOTENT_CALL,
    REPLY_ANY,
    format_expiry,
    is_timestamp,
    parse_expiry,
    preferred_wait,
    prefers_async,
)
from beckon_runtime.http_messages import Answer, Finish, HangUp, Request, Respond
from beckon_runtime.posts import RawHeader, Target
from beckon_shim import responses
from beckon_shim.brokers import Brokers
from beckon_shim.delivery import IDEMPOTENT, BrokerPosts, Delivery, at_deadline
from beckon_shim.exchange import NOTED, Exchange, ids_in
from beckon_shim.messages import WireEvent, read
from beckon_shim.probes import is_probe
from beckon_shim.receipts import RECEIPTS
from beckon_shim.reply_marks import named_attribute
from beckon_shim.status import Status
from beckon_shim.stream import ProgressStream, wants_reports
from beckon_shim.waiters import NOT_BEGUN_HEADER, Waiter


@dataclass(frozen=True, slots=True)
class Deadlines:
    """The default and the longest time of calls, in seconds."""

    default: float
    longest: float

    def seconds(self, preferred: float | None, expires: float | None, now: float) -> float:
        """Return how long to wait; `expires` and `now` are seconds since the epoch."""
        seconds = self.default if preferred is None else preferred
        if expires is not None:
            left = max(0.0, expires - now)
            seconds = left if preferred is None else min(seconds, left)
        return min(seconds, self.longest)


REPLY_MODE = b"beckon-reply"
"""The header of a request whose tool may answer with something else than an event; its value is `any`."""

_EXPIRY = b"ce-expirytime"
# What a caller knows of the tool, for a broker that retries by it, or that reads the tool's answer.
_HINTS = {
    (IDEMPOTENT, b"true"): (b"ce-" + IDEMPOTENT_CALL.encode(), b"true"),
    (REPLY_MODE, ANY.encode()): (b"ce-" + REPLY_ANY.encode(), ANY.encode()),
}
# Logged at debug level only: too many calls must not write a line each.
_USUAL = frozenset((responses.REPLIED, "full", "draining"))
# Trace context is about the HTTP request, not about the event; it goes along.
_PASSED_ON = frozenset((b"traceparent", b"tracestate", b"x-request-id"))


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of calls: their number at once, and their time."""

    waiting: int
    deadlines: Deadlines


class Calls:
    """Takes calls: POST a CloudEvent, get the reply event or a problem."""

    def __init__(
        self, exchange: Exchange, status: Status, brokers: Brokers, posts: BrokerPosts, limits: Limits
    ) -> None:
        self._waiters = exchange.waiters
        self._exchange = exchange
        self._status = status
        self._brokers = brokers
        self._posts = posts
        self._limits = limits
        self._loop = asyncio.get_running_loop()

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Take one request; a call is answered when its reply comes."""
        if request.path.startswith(RECEIPTS):
            return self._exchange.receipts.handle(request, respond)
        if request.method != "POST":
            respond(self._status.answer(request) or responses.wrong_method(b"POST"))
            return None
        stream = ProgressStream(respond) if wants_reports(request.headers) else None
        end = stream.end if stream else respond
        finish = partial(self._finish, end, time.monotonic(), _noted(request.headers))
        target = self._target(request.path)
        if isinstance(target, Answer):
            finish(target)
            return None
        try:
            event = read(request.headers, request.body)
            seconds = self._seconds(request.headers, event)
            waiter = self._send(event, request, target, seconds, finish) if seconds > 0 else None
        except EventError as error:
            finish(responses.bad_event(error))
            return None
        if waiter is None:
            finish(responses.expired())
            return None
        if stream is not None:
            waiter.hear = stream.report
            stream.receipt = waiter.receipt
        return partial(self._hang_up, waiter)

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to an event over the limit."""
        self._exchange.metrics.call("rejected")
        return responses.too_large(limit)

    def _target(self, path: str) -> Target | Answer:
        """Return the Broker for a call, or the refusal."""
        if self._status.draining:
            return responses.draining()
        limit = self._limits.waiting
        # Posts outlive their callers at a Broker that delivers before it answers.
        if len(self._waiters) >= limit or len(self._posts) >= 2 * limit:
            return responses.full(limit)
        return self._brokers.find(path)

    def _seconds(self, headers: list[RawHeader], event: WireEvent) -> float:
        """Return the time this call has; put `expirytime` into an event without one."""
        now = time.time()
        stamp = event.attributes.get(_EXPIRY)
        expires = None
        if stamp is not None:
            text = stamp.decode("latin-1")
            if not is_timestamp(text):
                raise EventError("the attribute 'expirytime' is not a timestamp of RFC 3339")
            expires = parse_expiry(text)
        seconds = self._limits.deadlines.seconds(preferred_wait(headers), expires, now)
        if stamp is None:
            event.attributes[_EXPIRY] = format_expiry(now + seconds)
        return seconds

    def _send(
        self, event: WireEvent, request: Request, target: Target, seconds: float, finish: Finish
    ) -> Waiter:
        """Register the waiter, then post: the reply may come before the acknowledgement."""
        attributes, reply_attribute = event.attributes, named_attribute(request.headers)
        call_id = attributes[b"ce-id"]
        token, nonce = self._exchange.tokens.mint(call_id)
        # A call that already bore the reply attribute would come straight back as its reply.
        attributes.pop(self._exchange.marks.reply, None)
        attributes.pop(reply_attribute, None)
        attributes.pop(NOT_BEGUN_HEADER, None)  # a Broker of Knative would copy it to the dead letter
        marks = self._exchange.marks
        attributes[marks.reply if is_probe(event) else marks.correlation] = token.encode()
        attributes.update(_HINTS[header] for header in request.headers if header in _HINTS)
        takes_later = prefers_async(request.headers)
        waiter = Waiter(nonce, call_id, attributes[b"ce-type"], target.url, finish, takes_later)
        waiter.timer = self._loop.call_later(seconds, self._time_out, waiter, seconds)
        waiter.receipt = self._exchange.receipts.header(request, nonce) if takes_later else None
        waiter.reply_attribute = reply_attribute
        self._waiters.open(waiter)
        headers = event.headers()
        headers.extend(header for header in request.headers if header[0] in _PASSED_ON)
        deadline, repeatable = self._loop.time() + seconds, (IDEMPOTENT, b"true") in request.headers
        Delivery(self._waiters, self._posts, waiter, target, headers, event.body, deadline, repeatable).post()
        return waiter

    def _finish(self, finish: Finish, started: float, noted: list[RawHeader], answer: Answer) -> None:
        metrics, seconds = self._exchange.metrics, time.monotonic() - started
        metrics.call(answer.outcome)
        if answer.outcome == responses.REPLIED:
            metrics.observe_seconds(seconds)
        level = logging.DEBUG if answer.outcome in _USUAL else logging.INFO
        if logger.isEnabledFor(level):
            logger.log(level, "a call: %s, after %.3f s", answer.outcome, seconds, extra=ids_in(noted))
        finish(answer)

    def _time_out(self, waiter: Waiter, seconds: float) -> None:
        self._waiters.fail(waiter, at_deadline(waiter, seconds))

    def _hang_up(self, waiter: Waiter) -> None:
        self._waiters.fail(waiter, responses.HUNG_UP)


def _noted(headers: list[RawHeader]) -> list[RawHeader]:
    """Return the identifying headers of a request. Nothing else of it is held until the call ends."""
    return [header for header in headers if header[0] in NOTED]
