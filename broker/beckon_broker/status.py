"""The broker's status as one JSON document; pure.

It is for people and for the command line.
"""

from collections.abc import Mapping

from beckon_broker.admission import NotReady
from beckon_broker.backlog import Backlog
from beckon_broker.topology import Subscription, Topology, ingress_url
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Key, Unreadable

DURABILITY = "in memory: events that are queued when this process ends are lost"
Document = dict[str, object]


def describe_topology(topology: Topology, loads: Mapping[Key, int], base_url: str) -> Document:
    """Return the `brokers` and `triggers`, with a reason if not ready.

    `queued` counts a Trigger's open deliveries. A ready object may have a reason, too: after an invalid edit
    its last valid version stays in force.
    """
    notes = {each.key: each for each in topology.not_ready}
    ready = topology.subscriptions()
    brokers: list[Document] = [
        {
            "namespace": broker.namespace,
            "name": broker.name,
            "ready": True,
            **_not_ready_document(notes.get(Key(GROUP, "Broker", *broker))),
            "url": ingress_url(base_url, broker),
            "triggers": [each.key.name for each in subscriptions],
        }
        for broker, subscriptions in topology.brokers.items()
    ]
    served = {each.key for each in ready}
    triggers = [_ready(each, loads.get(each.key, 0), notes.get(each.key)) for each in ready]
    for note in topology.not_ready:
        if note.key.kind == "Trigger" and note.key not in served:
            triggers.append(_not_ready(note))
        if note.key.kind == "Broker" and (note.key.namespace, note.key.name) not in topology.brokers:
            brokers.append(_not_ready(note))
    return {"brokers": brokers, "triggers": triggers}


def describe_backlog(backlog: Backlog) -> Document:
    """Return the load of the queue, and its limits."""
    return {
        "deliveries": backlog.deliveries,
        "maxDeliveries": backlog.max_deliveries,
        "events": backlog.events,
        "bytes": backlog.bytes,
        "maxBytes": backlog.max_bytes,
    }


def describe_unreadable(unreadable: tuple[Unreadable, ...]) -> list[Document]:
    """Return the unreadable parts of the manifests."""
    return [{"origin": each.origin, "message": each.message} for each in unreadable]


def _ready(subscription: Subscription, queued: int, note: NotReady | None) -> Document:
    return {
        **_identity(subscription.key),
        "broker": subscription.broker.name,
        "ready": True,
        **_not_ready_document(note),
        "subscriber": subscription.subscriber,
        "deadLetterSink": subscription.dead_letter,
        "queued": queued,
    }


def _not_ready(note: NotReady) -> Document:
    return {**_identity(note.key), "ready": False, **_not_ready_document(note)}


def _not_ready_document(note: NotReady | None) -> Document:
    return {"reason": note.reason, "message": note.message} if note else {"reason": "", "message": ""}


def _identity(key: Key) -> Document:
    return {"namespace": key.namespace, "name": key.name}
