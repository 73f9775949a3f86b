"""The Brokers of the class `Beckon` and their Triggers, from the API server in place of folders.

The operator has resolved their addresses: a Trigger is routed to the `subscriberUri` in its status, and takes
part once it has one. A Broker takes events while its status has an address. The operator learns by
`POST /in-force` which Triggers this process routes by (beckon_contract.knative.broker_class).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from beckon_broker.envelope import BrokerName
from beckon_broker.topology import NotReady, Subscription, Topology
from beckon_contract.knative.broker_class import (
    LogReport,
    TriggerState,
    in_force_answer,
    is_of_class,
    read_request,
)
from beckon_contract.knative.delivery import Delivery
from beckon_contract.knative.triggers import (
    GROUP,
    Broker,
    InvalidResource,
    Trigger,
    parse_broker,
    parse_trigger,
)
from beckon_contract.kubernetes_objects import Key, Resource, Unreadable, from_object
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection, Document, Name
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact

logger = logging.getLogger(__name__)

_API_VERSION = f"{GROUP}/v1"
_GATHER_SECONDS = 0.005  # what changes together is applied together
_REST = 2.0  # times as long as applying took: at most a third of the time is spent on it
_CURES = {
    403: "give the broker's account list and watch on brokers and triggers",
    404: "Knative Eventing is not installed",
}

Parsed = TypeVar("Parsed", Broker, Trigger)


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Parsed]):
    """An object as last seen, and its content; `problem` is why it has none."""

    resource: Resource
    parsed: Parsed | None
    problem: str = ""


class FollowedObjects(Generic[Parsed]):
    """The objects of one kind; a sink of a reflector. What is unchanged is not parsed again."""

    def __init__(self, kind: str, parse: Callable[[Resource], Parsed], changed: Callable[[], None]) -> None:
        self._kind = kind
        self._parse: Callable[[Resource], Parsed] = parse
        self._changed = changed
        self.entries: dict[Name, _Entry[Parsed]] = {}

    def put(self, document: Document) -> None:
        """Take an object; one in deletion is gone."""
        try:
            resource = from_object({**document, "apiVersion": _API_VERSION, "kind": self._kind})
        except ValueError as error:
            logger.warning("a %s that cannot be read is left out: %s", self._kind, error)
            return
        name = resource.namespace, resource.name
        if (document.get("metadata") or {}).get("deletionTimestamp"):
            self.drop(*name)
            return
        before = self.entries.get(name)
        self.entries[name] = self._read(resource, before)
        if before is None or _routing_of(before) != _routing_of(self.entries[name]):
            self._changed()

    def drop(self, namespace: str, name: str) -> None:
        """Forget an object."""
        if self.entries.pop((namespace, name), None) is not None:
            self._changed()

    def _read(self, resource: Resource, known: _Entry[Parsed] | None) -> _Entry[Parsed]:
        if known and (known.resource.spec, known.resource.annotations) == (
            resource.spec,
            resource.annotations,
        ):
            return _Entry(resource, known.parsed, known.problem)
        try:
            return _Entry(resource, self._parse(resource))
        except InvalidResource as error:
            return _Entry(resource, None, str(error))


class ClusterSource:
    """Follows the API server, and puts each new topology in force by `apply`."""

    is_cluster = True
    unreadable: tuple[Unreadable, ...] = ()

    def __init__(
        self,
        api: ApiClient,
        namespaces: tuple[str, ...],
        apply: Callable[[Topology], None],
        report_log: Callable[[], LogReport],
    ) -> None:
        """Take the namespaces to follow, none for all."""
        self._api = api
        self._namespaces = namespaces
        self._apply = apply
        self._report_log = report_log
        self._news = asyncio.Event()
        self._brokers: FollowedObjects[Broker] = FollowedObjects("Broker", parse_broker, self._news.set)
        self._triggers: FollowedObjects[Trigger] = FollowedObjects("Trigger", parse_trigger, self._news.set)
        self._contact = Contact(_CURES)
        self._routed: dict[Name, Subscription] = {}
        self._in_force: dict[Name, TriggerState] = {}
        self._applied = asyncio.Condition()
        self._has_applied = False

    @property
    def why_not_ready(self) -> str:
        """Why this process must get no events yet; "" once every Broker and Trigger is in force."""
        if self._has_applied:
            return ""
        return self._contact.why_incomplete or "the Brokers and Triggers are not all read yet"

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            for namespace in self._namespaces or (None,):
                for plural, sink in (("brokers", self._brokers), ("triggers", self._triggers)):
                    collection = Collection(_API_VERSION, plural, namespace)
                    group.create_task(Reflector(self._api, collection, sink, self._contact).run())
            await self._contact.wait()
            while True:
                self._news.clear()
                started = time.monotonic()
                await self._put_in_force()
                spent = time.monotonic() - started
                await asyncio.sleep(_REST * spent)
                await self._news.wait()
                await asyncio.sleep(_GATHER_SECONDS)

    async def catch_up(self) -> None:
        """Do nothing: a Trigger is Ready once it is in force here."""

    async def answer_in_force(self, content: bytes) -> dict[str, Any]:
        """Return the answer to `POST /in-force`; raise `ValueError` with the first mistake in a request.

        It comes once one more of the requested Triggers is in force, or after the requested time.
        """
        try:
            states, seconds = read_request(orjson.loads(content))
        except orjson.JSONDecodeError as error:
            raise ValueError(f"the request is no JSON: {error}") from None
        in_force = self._find_in_force(states)
        if len(in_force) < len(states) and seconds:
            before = len(in_force)
            try:
                async with asyncio.timeout(seconds), self._applied:
                    await self._applied.wait_for(lambda: len(self._find_in_force(states)) > before)
            except TimeoutError:
                pass
            in_force = self._find_in_force(states)
        return in_force_answer(in_force, self._report_log())

    def _find_in_force(self, states: list[TriggerState]) -> list[TriggerState]:
        return [state for state in states if self._in_force.get(state[:2]) == state]

    async def _put_in_force(self) -> None:
        brokers = dict(self._taking_brokers())
        routes: dict[BrokerName, list[Subscription]] = {broker: [] for broker in brokers}
        routed: dict[Name, Subscription] = {}
        in_force: dict[Name, TriggerState] = {}
        not_ready: list[NotReady] = []
        for name, entry in self._triggers.entries.items():
            broker = self._broker_of(entry)
            if broker not in routes:
                continue
            subscription = _subscribe(entry, broker, brokers[broker], self._routed.get(name))
            if isinstance(subscription, NotReady):
                not_ready.append(subscription)
            if not isinstance(subscription, Subscription):
                continue
            routes[broker].append(subscription)
            routed[name] = subscription
            in_force[name] = _state_of(entry.resource, subscription)
        self._apply(Topology({broker: tuple(each) for broker, each in routes.items()}, tuple(not_ready)))
        self._routed = routed
        async with self._applied:
            self._in_force, self._has_applied = in_force, True
            self._applied.notify_all()

    def _taking_brokers(self) -> Iterator[tuple[BrokerName, Delivery]]:
        """Yield the Brokers that take events, with their delivery."""
        for entry in self._brokers.entries.values():
            resource = entry.resource
            if entry.parsed is not None and is_of_class(resource) and resource.status.get("address"):
                yield BrokerName(resource.namespace, resource.name), entry.parsed.delivery

    def _broker_of(self, entry: _Entry[Trigger]) -> BrokerName:
        broker = entry.resource.spec.get("broker")
        name = entry.parsed.broker if entry.parsed else broker if isinstance(broker, str) else ""
        return BrokerName(entry.resource.namespace, name)


def _routing_of(entry: _Entry[Any]) -> tuple[object, ...]:
    """Return all by which events are routed: a condition that turns True, for one, makes no difference."""
    resource, status = entry.resource, entry.resource.status
    addresses = (_text(status, "subscriberUri"), _text(status, "deadLetterSinkUri"), status.get("address"))
    identity = (resource.uid, resource.generation, resource.spec, resource.annotations)
    return (*identity, *addresses, bool(status.get("conditions")))


def _subscribe(
    entry: _Entry[Trigger], broker: BrokerName, default: Delivery, before: Subscription | None
) -> Subscription | NotReady | None:
    """Return a Trigger with the addresses in its status; its own delivery replaces the Broker's whole.

    `None` means that the operator has not judged it yet, as each new Trigger for a moment.

    A Trigger that is routed (`before`) stays so with its old dead-letter sink, until the operator has written
    the new one.
    """
    trigger, status = entry.parsed, entry.resource.status
    key = Key(GROUP, "Trigger", entry.resource.namespace, entry.resource.name)
    if trigger is None:
        return NotReady(key, "InvalidSpec", entry.problem)
    delivery = trigger.delivery or default
    subscriber, dead_letter = _text(status, "subscriberUri"), _text(status, "deadLetterSinkUri")
    if not subscriber and not status.get("conditions"):
        return None
    if not subscriber:
        return NotReady(key, "SubscriberUnresolved", "the operator has written no status.subscriberUri")
    if delivery.dead_letter is None:
        dead_letter = ""
    elif not dead_letter:
        if before is None:
            message = "the operator has written no status.deadLetterSinkUri"
            return NotReady(key, "DeadLetterSinkUnresolved", message)
        dead_letter = before.dead_letter or ""
    return Subscription(
        trigger.key,
        broker,
        trigger.filter,
        subscriber,
        delivery,
        dead_letter or None,
        trigger.required,
        has_own_delivery=trigger.delivery is not None,
        ordered=trigger.ordered,
    )


def _state_of(trigger: Resource, routed: Subscription) -> TriggerState:
    dead_letter = routed.dead_letter or ""
    return TriggerState(
        trigger.namespace, trigger.name, trigger.uid, trigger.generation, routed.subscriber, dead_letter
    )


def _text(status: Mapping[str, Any], name: str) -> str:
    value = status.get(name)
    return value if isinstance(value, str) else ""
