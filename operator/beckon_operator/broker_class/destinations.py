"""Destinations as addresses: `ref`, `uri`, or both, by the rules of Knative's resolver.

knative/pkg resolver/addressable_resolver.go. A `uri` of any scheme is an address: what cannot be delivered
there becomes a dead letter.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from beckon_contract.knative.addresses import Address, Unaddressable, published_address
from beckon_contract.knative.delivery import Destination, Reference
from beckon_operator.broker_class.references import LookUp, NotFound, Pending

Find = Callable[[Reference], LookUp]


@dataclass(frozen=True, slots=True)
class Unresolved:
    """Why a Destination has no usable address; without a reason of its own it could not be resolved."""

    message: str
    reason: str = ""


Resolution = Address | Unresolved | Pending


def resolve_destination(destination: Destination, find: Find, cluster_domain: str) -> Resolution:
    """Return the address of a Destination.

    `Pending` is the answer while the objects of the reference's kind are not known yet.
    """
    ca_certs, audience = destination.ca_certs or "", destination.audience or ""
    if destination.ref is None:
        uri = destination.uri or ""
        parts = urlsplit(uri)
        if not parts.scheme or not parts.netloc:
            return Unresolved(f"uri {uri!r} is not absolute; write http://HOST/PATH")
        return Address(uri, ca_certs, audience)
    base = _address_of(destination.ref, find, cluster_domain)
    if not isinstance(base, Address):
        return base
    url = base.url
    if destination.uri:
        if urlsplit(destination.uri).scheme:
            return Unresolved(
                f"uri {destination.uri!r} is set beside a ref: write a path relative to the ref's address"
            )
        url = urljoin(base.url, destination.uri)
    return Address(url, ca_certs or base.ca_certs, audience or base.audience)


def refuse_address(address: Address, what: str) -> Unresolved | None:
    """Return why the broker cannot send to an address that it knows; `None` if it can."""
    if address.audience:
        return Unresolved(
            f"{what} takes only requests with an OIDC token for {address.audience!r}; Brokers of the class "
            "Beckon send none: use a subscriber without an audience, or a Broker of another class",
            "AudienceNotSupported",
        )
    if address.ca_certs:
        return Unresolved(
            f"{what} has a certificate of its own CA (CACerts), which Brokers of the class Beckon do not "
            "check: use a subscriber over http or with a public certificate, or a Broker of another class",
            "CACertsNotSupported",
        )
    return None


def _address_of(ref: Reference, find: Find, cluster_domain: str) -> Resolution:
    document = find(ref)
    if isinstance(document, NotFound):
        return Unresolved(document.message)
    if isinstance(document, Pending):
        return document
    if (ref.api_version, ref.kind) == ("v1", "Service"):
        return Address(f"http://{ref.name}.{ref.namespace}.svc.{cluster_domain}")
    what = f"{ref.kind} {ref.namespace}/{ref.name} ({ref.api_version})"
    try:
        address = published_address(document.status, f"the address of {what}")
    except Unaddressable as error:
        return Unresolved(str(error))
    if address is None:
        return Unresolved(
            f"{what} publishes no status.address.url: it is not ready yet, or its kind takes no events"
        )
    return address
