"""Delivery of one event to one Trigger: attempts, back-off, the reply, the dead letter."""

import asyncio
import base64
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from beckon_broker.envelope import TTL, Envelope, Refused, seal_reply
from beckon_broker.inbox import Inboxes
from beckon_broker.log import LOG_AWAY, HeldDelivery, QueuedDelivery
from beckon_broker.metrics import Metrics
from beckon_broker.sender import (
    MAX_DATA_BYTES,
    NO_ANSWER,
    FailedAttempt,
    Headers,
    Post,
    read_answer,
    read_any_answer,
    read_dead_letter_answer,
)
from beckon_broker.topology import Subscription, ingress_url
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, to_binary, to_structured
from beckon_contract.cloudevents.extensions import IDEMPOTENT_CALL, NOT_BEGUN, OBSERVER, REPLY_ANY
from beckon_runtime.posts import Ack
from beckon_runtime.problem import Problem


@dataclass(slots=True)
class Lane:
    """The deliveries of one Trigger; a change applies from the next attempt.

    A lane outlives its Trigger until its last delivery is over: accepted events are delivered to the
    Trigger's last subscriber. `open` counts the deliveries waiting or in progress. The deliveries of an
    ordered Trigger take turns.
    """

    subscription: Subscription
    slots: asyncio.Semaphore
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    open: int = 0


DESTINATION = "knativeerrordest"
CODE = "knativeerrorcode"
DATA = "knativeerrordata"


def dead_letter(queued: QueuedDelivery, destination: str, failure: FailedAttempt) -> CloudEvent:
    """Return the original event with the attributes of its failure.

    They are the failed destination, the status code and the answer's body. The body is cut so that its Base64
    has at most 1024 characters; an empty one gives no attribute. `NOT_BEGUN` and `OBSERVER` are there only if
    they are true.
    """
    envelope = queued.envelope
    error: dict[str, AttributeValue] = {
        TTL: envelope.ttl,
        DESTINATION: destination,
        CODE: failure.code,
    }
    if failure.data:
        error[DATA] = base64.b64encode(failure.data[:MAX_DATA_BYTES]).decode()
    if not failure.begun:
        error[NOT_BEGUN] = True
    if queued.observes:
        error[OBSERVER] = True
    return envelope.event.without(DATA, NOT_BEGUN, OBSERVER).extended(**error)


logger = logging.getLogger(__name__)

T = TypeVar("T")
Accept = Callable[[Envelope, str], Awaitable[None]]
_TRUE = (True, "true")
_LOG_SECONDS = 300.0  # for which a reply waits for the log
_LOG_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every delivery.

    `concurrency` limits the simultaneous attempts for one Trigger; `timeout` is the seconds of an attempt
    where `delivery.timeout` is absent. `base_url` is where this broker listens. `correlation` and `reply`
    name the attributes by which calls and replies belong together (Knative's RequestReply). A stored delivery
    waits `unknown_seconds` for a Trigger that this process does not know yet.
    """

    concurrency: int
    timeout: float
    base_url: str
    correlation: str = "correlationid"
    reply: str = "replyid"
    unknown_seconds: float = 10.0


@dataclass(slots=True)
class _Attempts:
    """The attempts of one delivery so far, and whether one of them may have begun the work."""

    count: int
    begun: bool


_LOST = FailedAttempt(
    NO_ANSWER,
    b"dispatch error: the broker process that delivered this event ended before it noted the outcome; "
    b"the subscriber may have done its work",
    retriable=False,
)


class Courier:
    """Carries out deliveries.

    `accept` takes a reply back into the broker, but not for the Triggers of a subscriber that has it already;
    it raises `Refused`. `inboxes` are those of the shim.
    """

    def __init__(
        self, post: Post, accept: Accept, metrics: Metrics, terms: Terms, inboxes: Inboxes | None = None
    ) -> None:
        self._inboxes = inboxes
        self._post = post
        self._accept = accept
        self._metrics = metrics
        self._terms = terms

    async def deliver(self, held: HeldDelivery, lane: Lane) -> None:
        """Deliver an event to a Trigger's subscriber and its reply to the broker, or dead-letter it.

        A cancelled delivery goes back to the log with its attempts.
        """
        attempts = _Attempts(held.queued.attempts, held.queued.begun)
        try:
            async with lane.turn if held.queued.ordered else contextlib.nullcontext():
                await self._deliver(held, lane, attempts)
        except asyncio.CancelledError:
            await held.release(attempts.count, begun=attempts.begun)
            raise
        await held.settle()

    async def _deliver(self, held: HeldDelivery, lane: Lane, attempts: _Attempts) -> None:
        queued, envelope = held.queued, held.queued.envelope
        once = self._is_made_once(queued, lane)
        outcome: CloudEvent | FailedAttempt | None = _LOST
        if not (once and (held.lost_before or queued.begun)):
            to_subscriber = partial(self._to_subscriber, queued, lane, attempts)
            outcome = await self._persist(lane, to_subscriber, attempts, once=once)
        destination = lane.subscription.subscriber
        if isinstance(outcome, CloudEvent):
            outcome = await self._take_reply(envelope, outcome, lane)
            destination = ingress_url(self._terms.base_url, envelope.broker)
        if isinstance(outcome, FailedAttempt):
            await self._dead_letter(queued, lane, destination, outcome)
        else:
            self._metrics.delivered(lane.subscription.key)

    def _is_made_once(self, queued: QueuedDelivery, lane: Lane) -> bool:
        """Return True for a call that is not repeated once its subscriber may have begun.

        A call whose EventType says that it is idempotent is repeated, and one whose Trigger has delivery
        options of its own.
        """
        extensions = queued.envelope.event.extensions
        is_call = self._terms.correlation in extensions and self._terms.reply not in extensions
        repeatable = extensions.get(IDEMPOTENT_CALL) in _TRUE or lane.subscription.has_own_delivery
        return is_call and not repeatable

    async def _persist(
        self,
        lane: Lane,
        attempt: Callable[[], Awaitable[T | FailedAttempt]],
        attempts: _Attempts,
        *,
        once: bool = False,
    ) -> T | FailedAttempt:
        """Repeat an attempt until success, permanent failure or the retry limit.

        With `once`, it is not repeated after an attempt that may have begun the work. The failure is that of
        the last attempt, but `begun` if any attempt was.
        """
        while True:
            outcome = await attempt()
            if not isinstance(outcome, FailedAttempt):
                return outcome
            attempts.begun |= outcome.begun
            delivery = lane.subscription.delivery
            over = not outcome.retriable or attempts.count >= delivery.retry
            if over or (once and outcome.begun and not outcome.asks_again):
                return replace(outcome, begun=attempts.begun)
            self._metrics.retried(lane.subscription.key)
            await asyncio.sleep(delivery.delay(attempts.count, outcome.retry_after))
            attempts.count += 1

    async def _to_subscriber(
        self, queued: QueuedDelivery, lane: Lane, attempts: _Attempts
    ) -> CloudEvent | FailedAttempt | None:
        envelope, begun_before = queued.envelope, attempts.begun
        async with lane.slots:
            subscription = lane.subscription
            headers, body = _message(envelope.event, subscription.delivery.format)
            headers += [("prefer", "reply"), *_headers(envelope)]
            timeout = subscription.delivery.timeout or self._terms.timeout
            attempts.begun = True  # for a process that is stopped meanwhile
            outcome = self._read(queued, await self._post(subscription.subscriber, headers, body, timeout))
            if isinstance(outcome, FailedAttempt):
                attempts.begun = begun_before or outcome.begun
            _log(envelope, lane, outcome)
            return outcome

    def _read(self, queued: QueuedDelivery, answer: Ack) -> CloudEvent | FailedAttempt | None:
        """Return the reply in an answer; the one to a call gets the call's token, if it has none."""
        call = queued.envelope.event
        if queued.answers and call.extensions.get(REPLY_ANY) == "any":
            reply = read_any_answer(
                answer, call, f"/beckon/triggers/{queued.trigger.namespace}/{queued.trigger.name}"
            )
        else:
            reply = read_answer(answer)
        if queued.answers and isinstance(reply, CloudEvent) and not reply.extensions.get(self._terms.reply):
            return reply.extended(**{self._terms.reply: call.extensions[self._terms.correlation]})
        return reply

    async def _take_reply(self, cause: Envelope, reply: CloudEvent, lane: Lane) -> FailedAttempt | None:
        """Hand a reply over to the replica of the shim that waits, and take it into the broker.

        Only the reply is tried again: the subscriber has done its work.
        """
        try:
            sealed = seal_reply(cause, reply)
        except Refused as refused:
            return self._refuse_reply(cause, refused.problem)
        served = "" if self._inboxes is None else await self._inboxes.hand_over(sealed)
        return await self._persist(
            lane, lambda: self._to_broker(cause, sealed, served), _Attempts(0, begun=True)
        )

    async def _to_broker(self, cause: Envelope, reply: Envelope, served: str) -> FailedAttempt | None:
        """Take a reply into the broker. While the log is away, this goes on, whatever the Trigger says."""
        end = time.monotonic() + _LOG_SECONDS
        while True:
            try:
                await self._accept(reply, served)
            except Refused as refused:
                outcome = self._refuse_reply(cause, refused.problem)
                if refused.problem.slug not in LOG_AWAY or time.monotonic() > end:
                    return outcome
            else:
                return None
            await asyncio.sleep(_LOG_PAUSE)

    def _refuse_reply(self, cause: Envelope, problem: Problem) -> FailedAttempt:
        self._metrics.refused(problem.slug)
        if problem.status < 500:
            logger.warning("the reply to event %s is not taken: %s", cause.event.id, problem.detail)
        return FailedAttempt(problem.status, problem.detail.encode(), retriable=problem.status >= 500)

    async def _dead_letter(
        self, queued: QueuedDelivery, lane: Lane, destination: str, failure: FailedAttempt
    ) -> None:
        trigger, envelope, event = lane.subscription.key, queued.envelope, queued.envelope.event
        what = f"event {event.id} (type {event.type}) for {trigger}"
        if lane.subscription.dead_letter is None:
            logger.warning(
                "dropped %s: %s gave %d, no dead-letter sink",
                what,
                destination,
                failure.code,
                extra=_ids(envelope),
            )
            self._metrics.dropped(trigger, "no-dead-letter-sink")
            return
        letter = dead_letter(queued, destination, failure)
        to_sink = partial(self._to_sink, envelope, letter, lane)
        failed = await self._persist(lane, to_sink, _Attempts(0, begun=True))
        if failed is None:
            self._metrics.dead_lettered(trigger)
            return
        sink = lane.subscription.dead_letter
        reason = "dropped %s: its dead-letter sink %s gave %d"
        logger.error(reason, what, sink, failed.code, extra=_ids(envelope))
        self._metrics.dropped(trigger, "dead-letter-sink-failed")

    async def _to_sink(self, envelope: Envelope, letter: CloudEvent, lane: Lane) -> FailedAttempt | None:
        async with lane.slots:
            subscription = lane.subscription
            if subscription.dead_letter is None:
                return FailedAttempt(NO_ANSWER, b"the dead-letter sink was taken away", retriable=False)
            headers, body = _message(letter, subscription.delivery.format)
            timeout = subscription.delivery.timeout or self._terms.timeout
            headers += _headers(envelope)
            return read_dead_letter_answer(await self._post(subscription.dead_letter, headers, body, timeout))


def _log(envelope: Envelope, lane: Lane, outcome: CloudEvent | FailedAttempt | None) -> None:
    """Log the outcome of an attempt.

    A failure is logged at INFO, for operators; a success at DEBUG, for following a single event.
    """
    failed = isinstance(outcome, FailedAttempt)
    level = logging.INFO if failed else logging.DEBUG
    if logger.isEnabledFor(level):
        how = f"failed with {outcome.code}" if isinstance(outcome, FailedAttempt) else "delivered"
        event, trigger = envelope.event, lane.subscription.key
        logger.log(level, "event %s for %s: %s", event.id, trigger, how, extra=_ids(envelope))


def _ids(envelope: Envelope) -> dict[str, str]:
    """Return the log fields of an event, named as in other services."""
    event = envelope.event
    ids = {"event_id": event.id}
    if "x-request-id" in (headers := dict(envelope.headers)):
        ids["request_id"] = headers["x-request-id"]
    if "traceparent" in event.extensions:
        ids["trace_id"] = str(event.extensions["traceparent"])[3:35]
    return ids


def _message(event: CloudEvent, mode: str | None) -> tuple[Headers, bytes]:
    """Return the HTTP message of an event. It is in binary mode, unless `delivery.format` is `json`."""
    return to_structured(event) if mode == "json" else to_binary(event)


def _headers(envelope: Envelope) -> Headers:
    return [("kn-namespace", envelope.broker.namespace), *envelope.headers]
