"""Brings together what decides about a Broker or a Trigger, and judges it."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from beckon_contract.knative.broker_class import is_of_class
from beckon_contract.knative.delivery import DEFAULT_DELIVERY, Delivery, Destination, Reference
from beckon_contract.knative.triggers import (
    DEPENDENCY_ANNOTATION,
    Broker,
    InvalidResource,
    Trigger,
    broker_of,
    parse_broker,
    parse_trigger,
)
from beckon_contract.kubernetes_objects import Resource
from beckon_operator.broker_class.broker_config import BrokerConfig, try_read_config
from beckon_operator.broker_class.broker_pods import LONG_SECONDS, BrokerPods
from beckon_operator.broker_class.broker_status import BrokerFacts, judge_broker
from beckon_operator.broker_class.destinations import Resolution, Unresolved, resolve_destination
from beckon_operator.broker_class.event_policies import EventPolicies
from beckon_operator.broker_class.references import Dependent, Pending, References
from beckon_operator.broker_class.statuses import MARK
from beckon_operator.broker_class.trigger_status import (
    TriggerFacts,
    judge_trigger,
    wanted_state,
    was_in_force,
)
from beckon_operator.cluster import Cluster
from beckon_operator.objects import BROKERS, ObservedObject
from beckon_sources.api_client import ApiClient

_CONFIG_SECONDS = 20.0  # for which the content of a ConfigMap is used
_SETTLING_SECONDS = 0.2  # until the pods have all answered after a start


@dataclass(frozen=True, slots=True)
class ClassRules:
    """The names of the installation: the ingress Service and its URL, the Secret of NATS, the DNS domain."""

    ingress_service: str
    ingress_url: str
    nats_secret: str = ""
    cluster_domain: str = "cluster.local"


@dataclass(frozen=True, slots=True)
class RelatedObjects:
    """What is followed beside Brokers and Triggers."""

    references: References
    pods: BrokerPods
    policies: EventPolicies


@dataclass(frozen=True, slots=True)
class Judgement:
    """The wanted status of an object, `None` to leave it; it is judged again after some seconds, if any."""

    status: dict[str, Any] | None = None
    again_after: float = 0.0


_LEFT_ALONE = Judgement()


@dataclass(slots=True)
class _ParsedObject:
    """An object of the class as it was parsed, or the problems of its spec."""

    spec: Mapping[str, Any]
    annotations: Mapping[str, str]
    content: Broker | Trigger | None
    problems: list[str] = field(default_factory=list)


class ClassJudge:
    """Judges Brokers and Triggers of the class; objects of other classes are left alone."""

    def __init__(
        self,
        api: ApiClient,
        cluster: Cluster,
        rules: ClassRules,
        related: RelatedObjects,
    ) -> None:
        self._api = api
        self.cluster = cluster
        self._rules = rules
        self._references = related.references
        self._pods = related.pods
        self._policies = related.policies
        self._parsed: dict[Dependent, _ParsedObject] = {}
        self._configs: dict[Reference, tuple[float, BrokerConfig | str]] = {}
        self._since: dict[Dependent, float] = {}

    async def judge(self, item: Dependent, observed: ObservedObject | None, now: str) -> Judgement:
        """Return the judgement of an object as last seen; `None` is one that is gone.

        Raises the errors of a request of `ApiClient`.
        """
        if observed is None or observed.leaving:
            self._forget(item)
            return _LEFT_ALONE
        if item[0] == BROKERS.name:
            return await self._judge_broker(item, observed.resource, now)
        return self._judge_trigger(item, observed.resource, now)

    async def _judge_broker(self, item: Dependent, broker: Resource, now: str) -> Judgement:
        if not is_of_class(broker):
            self._forget(item)
            return _LEFT_ALONE
        if not self._pods.is_settled:
            return Judgement(again_after=_SETTLING_SECONDS)
        parsed = self._parse(item, broker, parse_broker)
        delivery = parsed.content.delivery if isinstance(parsed.content, Broker) else Delivery()
        self._references.set_references(item, _references_of(delivery.dead_letter))
        sink = self._resolve(delivery.dead_letter) if delivery.dead_letter else None
        if isinstance(sink, Pending):
            return _LEFT_ALONE
        facts = BrokerFacts(
            problems=parsed.problems,
            config=await self._read_config(broker),
            dead_letter=sink,
            policies=self._policies.applying_to(broker),
            ingress=self._pods.view,
            ingress_service=self._rules.ingress_service,
            secret=self._rules.nats_secret,
            url=f"{self._rules.ingress_url}/{broker.namespace}/{broker.name}",
        )
        return Judgement(judge_broker(broker, facts, now))

    def _judge_trigger(self, item: Dependent, trigger: Resource, now: str) -> Judgement:
        name = broker_of(trigger)
        observed = self.cluster.objects_of(BROKERS).find_object(trigger.namespace, name)
        broker = observed.resource if observed is not None and not observed.leaving else None
        # Without a Broker a Trigger has no class; it is judged if it was of this class before.
        if not (is_of_class(broker) if broker is not None else _was_of_class(trigger)):
            self._forget(item)
            return _LEFT_ALONE
        facts = self._find_facts(item, trigger, broker, name)
        if facts.is_pending:
            return _LEFT_ALONE
        key, state = (trigger.namespace, trigger.name), wanted_state(trigger, facts)
        waits_for: str | None = ""
        if state is None:
            waits_for = None
        elif not was_in_force(trigger, state):
            self._pods.want(state)
            waits_for = self._pods.waits_for(state)
            if waits_for and was_in_force(trigger, state, same_version=False) and self._may_wait(item):
                # A changed filter reaches the pods in a moment: until then the Trigger stays as it is.
                return Judgement(again_after=LONG_SECONDS)
        if not waits_for:
            self._pods.forget(key)
            self._since.pop(item, None)
        return Judgement(judge_trigger(trigger, facts, waits_for, now), LONG_SECONDS if waits_for else 0.0)

    def _find_facts(
        self, item: Dependent, trigger: Resource, broker: Resource | None, name: str
    ) -> TriggerFacts:
        parsed = self._parse(item, trigger, parse_trigger)
        if not isinstance(parsed.content, Trigger):
            self._references.set_references(item, frozenset())
            return TriggerFacts(parsed.problems, broker, name, Unresolved(""))
        delivery = parsed.content.delivery or self._delivery_of(broker)
        dependency = _dependency_of(trigger)
        references = _references_of(parsed.content.subscriber, delivery.dead_letter)
        self._references.set_references(item, references | ({dependency} if dependency else set()))
        return TriggerFacts(
            problems=(),
            broker=broker,
            broker_name=name,
            subscriber=self._resolve(parsed.content.subscriber),
            dead_letter=self._resolve(delivery.dead_letter) if delivery.dead_letter else None,
            dependency=self._references.look_up(dependency) if dependency else None,
        )

    def _delivery_of(self, broker: Resource | None) -> Delivery:
        if broker is None:
            return DEFAULT_DELIVERY
        parsed = self._parse((BROKERS.name, broker.namespace, broker.name), broker, parse_broker)
        return parsed.content.delivery if isinstance(parsed.content, Broker) else DEFAULT_DELIVERY

    async def _read_config(self, broker: Resource) -> BrokerConfig | str:
        reference = broker.spec.get("config")
        if not isinstance(reference, Mapping):
            return BrokerConfig()
        api_version, kind, name = (str(reference.get(one) or "") for one in ("apiVersion", "kind", "name"))
        ref = Reference(api_version, kind, str(reference.get("namespace") or broker.namespace), name)
        read_at, content = self._configs.get(ref, (-_CONFIG_SECONDS, ""))
        if time.monotonic() - read_at >= _CONFIG_SECONDS:
            content = await try_read_config(self._api, ref)
            self._configs[ref] = time.monotonic(), content
        return content

    def _resolve(self, destination: Destination) -> Resolution:
        return resolve_destination(destination, self._references.look_up, self._rules.cluster_domain)

    def _parse(
        self, item: Dependent, resource: Resource, parse: Callable[[Resource], Broker | Trigger]
    ) -> _ParsedObject:
        known = self._parsed.get(item)
        if known and known.spec == resource.spec and known.annotations == resource.annotations:
            return known
        try:
            parsed = _ParsedObject(resource.spec, resource.annotations, parse(resource))
        except InvalidResource as error:
            problems = [str(one) for one in error.problems]
            parsed = _ParsedObject(resource.spec, resource.annotations, None, problems)
        self._parsed[item] = parsed
        return parsed

    def _may_wait(self, item: Dependent) -> bool:
        return time.monotonic() - self._since.setdefault(item, time.monotonic()) < LONG_SECONDS

    def _forget(self, item: Dependent) -> None:
        self._parsed.pop(item, None)
        self._since.pop(item, None)
        self._references.set_references(item, frozenset())
        if item[0] != BROKERS.name:
            self._pods.forget(item[1:])


def _references_of(*destinations: Destination | None) -> frozenset[Reference]:
    return frozenset(one.ref for one in destinations if one is not None and one.ref is not None)


def _was_of_class(trigger: Resource) -> bool:
    marks = trigger.status.get("annotations")
    return isinstance(marks, Mapping) and MARK in marks


def _dependency_of(trigger: Resource) -> Reference | None:
    """Return the object in the annotation `knative.dev/dependency`, which the parser has checked."""
    text = trigger.annotations.get(DEPENDENCY_ANNOTATION)
    if text is None:
        return None
    document = json.loads(text)
    return Reference(document["apiVersion"], document["kind"], trigger.namespace, document["name"])
