"""Delivery of one event to one Trigger: attempts, back-off, the reply, the dead letter."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from beckon_broker.envelope import TTL, Envelope, Refused, seal_reply
from beckon_broker.metrics import Metrics
from beckon_broker.sender import Headers, NoAnswer, Post, Setback, read_answer, read_dead_letter_answer
from beckon_broker.topology import Subscription, ingress_url
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, to_binary, to_structured


@dataclass(slots=True)
class Lane:
    """The deliveries of one Trigger; a change applies from the next attempt.

    A lane outlives its Trigger until its last delivery is over: accepted events are delivered to the
    Trigger's last subscriber. `open` counts the deliveries waiting or in progress.
    """

    subscription: Subscription
    slots: asyncio.Semaphore
    open: int = 0


DESTINATION = "knativeerrordest"
CODE = "knativeerrorcode"
DATA = "knativeerrordata"
MAX_DATA_BYTES = 768  # 1024 characters in Base64, Knative's bound


def dead_letter(envelope: Envelope, destination: str, setback: Setback) -> CloudEvent:
    """Return the original event with the attributes of its failure.

    They are the failed destination, the status code and the answer's body. The body is cut so that its Base64
    has at most 1024 characters; an empty one gives no attribute.
    """
    error: dict[str, AttributeValue] = {
        TTL: envelope.ttl,
        DESTINATION: destination,
        CODE: setback.code,
    }
    if setback.data:
        error[DATA] = base64.b64encode(setback.data[:MAX_DATA_BYTES]).decode()
    return envelope.event.without(DATA).extended(**error)


logger = logging.getLogger(__name__)

T = TypeVar("T")
_NO_ANSWER = 500  # what knativeerrorcode says where there was no HTTP answer, as in Knative


class Courier:
    """Delivers events; has no queue.

    `accept` takes a reply back into the broker or raises `Refused`.
    """

    def __init__(
        self, post: Post, accept: Callable[[Envelope], None], metrics: Metrics, timeout: float, base_url: str
    ) -> None:
        self._post = post
        self._accept = accept
        self._metrics = metrics
        self._timeout = timeout
        self._base_url = base_url

    async def deliver(self, envelope: Envelope, lane: Lane) -> None:
        """Deliver an event to a Trigger's subscriber and its reply to the broker, or dead-letter it."""
        outcome = await self._persist(lane, lambda: self._to_subscriber(envelope, lane))
        destination = lane.subscription.subscriber
        if isinstance(outcome, CloudEvent):
            # Only the reply is tried again: the subscriber has done its work.
            reply = outcome
            outcome = await self._persist(lane, lambda: self._to_broker(envelope, reply))
            destination = ingress_url(self._base_url, envelope.broker)
        if isinstance(outcome, Setback):
            await self._dead_letter(envelope, lane, destination, outcome)
        else:
            self._metrics.delivered(lane.subscription.key)

    async def _persist(self, lane: Lane, attempt: Callable[[], Awaitable[T | Setback]]) -> T | Setback:
        """Repeat an attempt until success, permanent failure or the retry limit."""
        retries = 0
        while True:
            outcome = await attempt()
            delivery = lane.subscription.delivery
            if not isinstance(outcome, Setback) or not outcome.retriable or retries >= delivery.retry:
                return outcome
            self._metrics.retried(lane.subscription.key)
            await asyncio.sleep(delivery.delay(retries, outcome.retry_after))
            retries += 1

    async def _to_subscriber(self, envelope: Envelope, lane: Lane) -> CloudEvent | Setback | None:
        async with lane.slots:
            subscription = lane.subscription
            headers, body = _message(envelope.event, subscription.delivery.format)
            headers += [("prefer", "reply"), *_headers(envelope)]
            timeout = subscription.delivery.timeout or self._timeout
            try:
                outcome = read_answer(await self._post(subscription.subscriber, headers, body, timeout))
            except NoAnswer as error:
                outcome = _no_answer(error)
            _log(envelope, lane, outcome)
            return outcome

    async def _to_broker(self, cause: Envelope, reply: CloudEvent) -> Setback | None:
        try:
            self._accept(seal_reply(cause, reply))
        except Refused as refused:
            problem, passing = refused.problem, refused.problem.status >= 500
            self._metrics.refused(problem.slug)
            if not passing:
                logger.warning("the reply to event %s is not taken: %s", cause.event.id, problem.detail)
            return Setback(problem.status, problem.detail.encode(), retriable=passing)
        return None

    async def _dead_letter(self, envelope: Envelope, lane: Lane, destination: str, setback: Setback) -> None:
        trigger, event = lane.subscription.key, envelope.event
        what = f"event {event.id} (type {event.type}) for {trigger}"
        if lane.subscription.dead_letter is None:
            logger.warning(
                "dropped %s: %s gave %d, no dead-letter sink",
                what,
                destination,
                setback.code,
                extra=_ids(envelope),
            )
            self._metrics.dropped(trigger, "no-dead-letter-sink")
            return
        letter = dead_letter(envelope, destination, setback)
        failed = await self._persist(lane, lambda: self._to_sink(envelope, letter, lane))
        if failed is None:
            self._metrics.dead_lettered(trigger)
            return
        sink = lane.subscription.dead_letter
        reason = "dropped %s: its dead-letter sink %s gave %d"
        logger.error(reason, what, sink, failed.code, extra=_ids(envelope))
        self._metrics.dropped(trigger, "dead-letter-sink-failed")

    async def _to_sink(self, envelope: Envelope, letter: CloudEvent, lane: Lane) -> Setback | None:
        async with lane.slots:
            subscription = lane.subscription
            if subscription.dead_letter is None:
                return Setback(_NO_ANSWER, b"the dead-letter sink was taken away", retriable=False)
            headers, body = _message(letter, subscription.delivery.format)
            timeout = subscription.delivery.timeout or self._timeout
            try:
                answer = await self._post(
                    subscription.dead_letter, headers + _headers(envelope), body, timeout
                )
            except NoAnswer as error:
                return _no_answer(error)
            return read_dead_letter_answer(answer)


def _log(envelope: Envelope, lane: Lane, outcome: CloudEvent | Setback | None) -> None:
    """Log the outcome of an attempt.

    A failure is logged at INFO, for operators; a success at DEBUG, for following a single event.
    """
    failed = isinstance(outcome, Setback)
    level = logging.INFO if failed else logging.DEBUG
    if logger.isEnabledFor(level):
        how = f"failed with {outcome.code}" if isinstance(outcome, Setback) else "delivered"
        event, trigger = envelope.event, lane.subscription.key
        logger.log(level, "event %s for %s: %s", event.id, trigger, how, extra=_ids(envelope))


def _ids(envelope: Envelope) -> dict[str, str]:
    """Return the log fields of an event, named as in other services."""
    event = envelope.event
    found = {"event_id": event.id}
    if "x-request-id" in (headers := dict(envelope.headers)):
        found["request_id"] = headers["x-request-id"]
    if "traceparent" in event.extensions:
        found["trace_id"] = str(event.extensions["traceparent"])[3:35]
    return found


def _message(event: CloudEvent, mode: str | None) -> tuple[Headers, bytes]:
    """Return the HTTP message of an event.

    It is in binary mode, unless `delivery.format` is `json`.
    """
    return to_structured(event) if mode == "json" else to_binary(event)


def _headers(envelope: Envelope) -> Headers:
    return [("kn-namespace", envelope.broker.namespace), *envelope.headers]


def _no_answer(error: NoAnswer) -> Setback:
    return Setback(_NO_ANSWER, f"dispatch error: {error}".encode(), retriable=True)
