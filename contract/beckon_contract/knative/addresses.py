"""Addresses of subscribers, and the readiness of Triggers without a controller.

A Trigger is ready if its subscriber has an address, and is no Service that says that it is not ready.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urljoin, urlsplit, urlunsplit

from beckon_contract.knative.delivery import Destination, Reference
from beckon_contract.knative.triggers import InvalidResource, parse_trigger
from beckon_contract.kubernetes_objects import Key, Resource, condition

CLUSTER_DOMAIN = "cluster.local"

_DNS_NAME = re.compile(r"(?P<name>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc(\.(?P<domain>.+))?")
_SERVICES = ("serving.knative.dev", "")  # the groups of both kinds of Services


class Unaddressable(ValueError):
    """A Destination without a usable address; the message names the cause."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an object for its events.

    It has the URL, the PEM certificates to trust there, and the audience a token must name.
    """

    url: str
    ca_certs: str = ""
    audience: str = ""


class AddressBook:
    """The addresses of a set of objects, by reference; of two objects with one key the later counts.

    The rules are those of Knative's resolver (knative/pkg resolver/addressable_resolver.go):
    the first of `status.addresses`, and only without those `status.address`; a core Service
    has its name in the cluster's DNS; a `uri` beside a `ref` is relative to the ref's URL.
    """

    def __init__(self, resources: Iterable[Resource], cluster_domain: str = CLUSTER_DOMAIN) -> None:
        self._statuses = {resource.key: resource.status for resource in resources}
        self._cluster_domain = cluster_domain

    def resolve(self, destination: Destination) -> str:
        """Return the absolute http(s) URL of a Destination; raise `Unaddressable`."""
        if destination.ref is None:
            if not destination.uri:
                raise Unaddressable("the destination has neither ref nor uri; write one of them")
            return self._of_uri(_absolute(destination.uri, "uri"))
        base = self._of_reference(destination.ref)
        if not destination.uri:
            return base
        if not _is_relative(destination.uri):
            raise Unaddressable(
                f"uri {destination.uri!r} is given beside a ref; "
                "write a path relative to the ref, or leave one of the two out"
            )
        return urljoin(base, destination.uri)

    def require_ready(self, destination: Destination) -> None:
        """Raise `Unaddressable` for an object that says that it is not ready, and publishes no address.

        Knative sends to a URI and to a core Service in any case, as their names are in the cluster's DNS. On
        a laptop they are not: there, a Service has no address until its process answers.
        """
        keys = self._named_by(destination.uri or "") if destination.ref is None else [_key(destination.ref)]
        for key in keys:
            status = self._statuses.get(key, {})
            ready = condition(status, "Ready")
            if ready and ready.status == "False" and published_address(status) is None:
                why = ready.message or ready.reason
                raise Unaddressable(f"{key.kind} {key.namespace}/{key.name} is not ready: {why}")

    def _named_by(self, uri: str) -> list[Key]:
        """Return the keys of the Service in a URI, one for each kind of Service."""
        service = service_of(uri, self._cluster_domain)
        return [Key(group, "Service", *service) for group in _SERVICES] if service else []

    def _of_uri(self, uri: str) -> str:
        """Replace scheme and host in the URI of a known Service.

        They become those of the address published by the Service. Other URIs stay as they are. On a laptop
        nothing else resolves it: no DNS knows the names of Services there.
        """
        for key in self._named_by(uri):
            status = self._statuses.get(key)
            address = published_address(status) if status is not None else None
            if address is not None:
                parts = urlsplit(uri)
                return urlunsplit((*urlsplit(address.url)[:2], *parts[2:]))
        return uri

    def _of_reference(self, ref: Reference) -> str:
        key = _key(ref)
        status = self._statuses.get(key)
        what = f"the address of {ref.kind} {ref.namespace}/{ref.name}"
        address = published_address(status, what) if status is not None else None
        if address is not None:
            return address.url
        if not key.group and ref.kind == "Service":
            return f"http://{ref.name}.{ref.namespace}.svc.{self._cluster_domain}"
        raise Unaddressable(_why_not(ref, found=status is not None))


def _key(ref: Reference) -> Key:
    return Key(ref.api_version.rpartition("/")[0], ref.kind, ref.namespace, ref.name)


def service_of(uri: str, cluster_domain: str = CLUSTER_DOMAIN) -> tuple[str, str] | None:
    """Return namespace and name of the Service in a URI.

    The URI names it by its DNS name; the result is `None` for other URIs.
    """
    try:
        match = _DNS_NAME.fullmatch(urlsplit(uri).hostname or "")
    except ValueError:
        match = None
    if match is None or match["domain"] not in (None, cluster_domain):
        return None
    return match["namespace"], match["name"]


def published_address(status: Mapping[str, object], what: str = "the address") -> Address | None:
    """Return the address an object publishes, or `None`.

    Raises `Unaddressable` for a URL that nothing can be sent to; `what` names it in the message.
    """
    addresses = status.get("addresses")
    first = addresses[0] if isinstance(addresses, list) and addresses else status.get("address")
    if not isinstance(first, Mapping):
        return None
    url, ca_certs, audience = (_text(first, name) for name in ("url", "CACerts", "audience"))
    return Address(_absolute(url, what), ca_certs, audience) if url else None


def _text(values: Mapping[str, object], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else ""


def _is_relative(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return not parts.scheme and not parts.netloc


def _absolute(url: str, what: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Unaddressable(f"{what} is {url!r}; expected an absolute http or https URL with a host")
    return url


def _why_not(ref: Reference, *, found: bool) -> str:
    what = f"{ref.kind} {ref.namespace}/{ref.name} ({ref.api_version})"
    if found:
        return f"{what} publishes no status.address.url: it is not ready yet, or its kind takes no events"
    return f"{what} does not exist; create it, or correct apiVersion, kind, namespace and name of the ref"


def with_readiness(resources: Iterable[Resource]) -> list[Resource]:
    """Return the objects, with a condition on unready Triggers.

    A Trigger whose subscriber has no address, or is not ready, gets a `Ready` condition that says so. In a
    cluster Knative's Trigger controller writes it; the reason is the same.
    """
    everything = list(resources)
    book = AddressBook(everything)
    return [_judged(resource, book) if resource.kind == "Trigger" else resource for resource in everything]


def _judged(resource: Resource, book: AddressBook) -> Resource:
    try:
        subscriber = parse_trigger(resource).subscriber
        book.require_ready(subscriber)
        book.resolve(subscriber)
    except InvalidResource:
        return resource
    except Unaddressable as error:
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": "Unable to get the Subscriber's URI",
            "message": str(error),
        }
        return replace(resource, status={**resource.status, "conditions": [condition]})
    return resource
