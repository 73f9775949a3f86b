"""The ways of a tool's calls: Triggers, subscribers and delivery.

There is one way for each Trigger that passes them.

The operator writes them into the status of a Tool, for people: no call depends on them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from beckon_contract.knative.delivery import Delivery, Reference
from beckon_contract.knative.routes import Listener

FIELD = "ways"


@dataclass(frozen=True, slots=True)
class CallRoute:
    """One Trigger of a tool's calls.

    `filter` is what it asks for, in few words; `subscriber` the object that it leads to, `None` for a plain
    URI; `address` the origin (`http://HOST:PORT`) to which it delivers, empty if it is not known. `retries`
    counts the attempts after the first, `dead_letters` says whether a call that cannot be delivered goes on
    to a sink; both are `None` if they are not known.
    """

    trigger: str
    filter: str = ""
    subscriber: Reference | None = None
    address: str = ""
    retries: int | None = None
    dead_letters: bool | None = None

    def service(self, namespace: str) -> str:
        """Return the subscriber's name, as written in this namespace.

        Without a subscriber it is the host and port of the address.
        """
        if self.subscriber is None:
            return _host(self.address)
        kind, name = self.subscriber.kind, self.subscriber.name
        there = "" if self.subscriber.namespace == namespace else f"{self.subscriber.namespace}/"
        return f"{there}{name}" if kind == "Service" else f"{kind} {there}{name}"


def make_route(listener: Listener, broker: Delivery | None, address: str) -> CallRoute:
    """Return the way of a Trigger.

    Its own delivery replaces that of its Broker as a whole. Only the origin of the address is stored: paths
    and queries of webhooks are as good as keys.
    """
    delivery = listener.trigger.delivery or broker
    return CallRoute(
        listener.trigger.name,
        listener.asks_for,
        listener.trigger.subscriber.ref,
        _origin(address),
        delivery.retry if delivery else None,
        delivery.dead_letter is not None if delivery else None,
    )


def route_document(found: CallRoute) -> dict[str, Any]:
    """Return a way for the status of a Tool, without unknown values."""
    subscriber = found.subscriber
    optional: dict[str, Any] = {
        "filter": found.filter or None,
        "address": found.address or None,
        "retries": found.retries,
        "deadLetters": found.dead_letters,
        "subscriber": subscriber
        and {
            "apiVersion": subscriber.api_version,
            "kind": subscriber.kind,
            "namespace": subscriber.namespace,
            "name": subscriber.name,
        },
    }
    return {"trigger": found.trigger} | {name: said for name, said in optional.items() if said is not None}


def read_routes(status: Mapping[str, Any]) -> list[CallRoute]:
    """Return the ways in the status of a Tool.

    There are none if an older operator wrote it.
    """
    written = status.get(FIELD)
    return list(_read(written)) if isinstance(written, list) else []


def _read(written: list[object]) -> Iterator[CallRoute]:
    for one in written:
        if isinstance(one, Mapping) and (trigger := _text(one, "trigger")):
            retries, dead_letters = one.get("retries"), one.get("deadLetters")
            yield CallRoute(
                trigger,
                _text(one, "filter"),
                _reference(one.get("subscriber")),
                _text(one, "address"),
                retries if isinstance(retries, int) and not isinstance(retries, bool) else None,
                dead_letters if isinstance(dead_letters, bool) else None,
            )


def _reference(value: object) -> Reference | None:
    if not isinstance(value, Mapping) or not _text(value, "name"):
        return None
    return Reference(*(_text(value, name) for name in ("apiVersion", "kind", "namespace", "name")))


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _origin(url: str) -> str:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}" if host else ""


def _host(address: str) -> str:
    return address.partition("://")[2]
