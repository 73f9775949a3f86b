"""The manifests that the local platform writes: addresses, dead-letter sinks, Triggers to the shim.

In a cluster, Knative's controllers and Beckon's chart see to all of this.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from beckon_cli.local.services import ServiceName
from beckon_contract.acceptance import PROGRESS_MARK
from beckon_contract.resources import Resource

# Six seconds of retries in all: long enough for a tool to be started again, short
# enough that a call to a dead one is told as undeliverable before it times out.
_DELIVERY: Mapping[str, Any] = {"retry": 5, "backoffPolicy": "exponential", "backoffDelay": "PT0.2S"}
# Almost 15 minutes in all: the shim acknowledges the answer to a run that waits only when an agent has stored
# it, and the agents or their database may be away for minutes. Linear, so that the pause never becomes much
# longer than the outage was: half a second at first, 30 s at the end.
_REPLY_DELIVERY: Mapping[str, Any] = {"retry": 60, "backoffPolicy": "linear", "backoffDelay": "PT0.5S"}


def manifests(
    *,
    addresses: Mapping[ServiceName, str],
    brokers: Mapping[tuple[str, str], Resource | None],
    broker_url: str,
    reply_url: str,
    reply_attribute: str,
) -> str:
    """Return, as YAML, a Service for each address, and a Broker with its Triggers for each broker."""
    documents: list[dict[str, Any]] = [_service(name, url) for name, url in sorted(addresses.items())]
    for (namespace, name), written in sorted(brokers.items()):
        documents.append(_broker(namespace, name, written, broker_url, reply_url))
        replies = _trigger(namespace, name, "replies", reply_attribute, f"{reply_url}/replies")
        replies["spec"]["delivery"] = {
            **_REPLY_DELIVERY,
            "deadLetterSink": {"uri": f"{reply_url}/dead-letters"},
        }
        documents.append(replies)
        progress = _trigger(namespace, name, "progress", PROGRESS_MARK, f"{reply_url}/progress")
        progress["spec"]["delivery"] = {"retry": 0}  # a report is overtaken by the next one
        documents.append(progress)
    return _dump(documents)


def _service(service: ServiceName, url: str) -> dict[str, Any]:
    metadata = {"namespace": service.namespace, "name": service.name}
    status = {"address": {"url": url}}
    return {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": metadata, "status": status}


def _broker(
    namespace: str, name: str, written: Resource | None, broker_url: str, reply_url: str
) -> dict[str, Any]:
    """Return the user's Broker with an address, and a dead-letter sink where it names none."""
    spec: dict[str, Any] = dict(written.spec) if written else {}
    delivery = dict(spec.get("delivery") or _DELIVERY)
    delivery.setdefault("deadLetterSink", {"uri": f"{reply_url}/dead-letters"})
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {**spec, "delivery": delivery},
        "status": {"address": {"url": f"{broker_url}/{namespace}/{name}"}},
    }


def _trigger(namespace: str, broker: str, name: str, attribute: str, url: str) -> dict[str, Any]:
    """Return a Trigger that brings the shim what bears an attribute: "" means any value, but present."""
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"namespace": namespace, "name": f"{broker}-beckon-{name}"},
        "spec": {
            "broker": broker,
            "filter": {"attributes": {attribute: ""}},
            "subscriber": {"uri": url},
        },
    }


def _dump(documents: Iterable[Mapping[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)
