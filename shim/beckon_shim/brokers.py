"""The addresses of Brokers, by a template or from the API server."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from beckon_contract.knative.addresses import Unaddressable, published_address
from beckon_contract.kubernetes_objects import READY, condition
from beckon_runtime.http_messages import Answer
from beckon_runtime.posts import Target
from beckon_shim import responses
from beckon_sources.api_types import Document, name_of
from beckon_sources.watch_status import Contact

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PATH = re.compile(rf"/({_LABEL})/((?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*)\Z")
_KNOWN_PATHS = 4096


class Brokers(Protocol):
    """Finds the addresses of Brokers."""

    @property
    def why_unready(self) -> str:
        """The reason why no call can be taken yet; empty for none."""
        ...

    def find(self, path: str) -> Target | Answer:
        """Return the Broker of the path `/<namespace>/<broker>`, or a refusal.

        The refusal is the answer for the caller, and gives the reason.
        """
        ...


class Templates:
    """The Brokers' URLs by path, made of a template like `http://host/{namespace}/{name}`.

    A template without placeholders is the one Broker of every path.
    """

    why_unready = ""

    def __init__(self, template: str) -> None:
        unknown = set(_PLACEHOLDER.findall(template)) - {"namespace", "name"}
        if unknown:
            raise ValueError(f"unknown placeholders {sorted(unknown)}; there are {{namespace}} and {{name}}")
        parts = urlsplit(_PLACEHOLDER.sub("x", template))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("not an HTTP URL; write for example http://broker:8081/{namespace}/{name}")
        self._template = template
        self._single = None if _PLACEHOLDER.search(template) else Target(template)
        self._known: dict[str, Target] = {}

    def find(self, path: str) -> Target | Answer:
        """Return the Broker of a path, or 404 if it names none."""
        if self._single is not None:
            return self._single
        target = self._known.get(path)
        if target is None:
            broker = named_broker(path)
            if broker is None:
                return responses.no_such_path(responses.CALL_PATH)
            target = Target(self._template.format(namespace=broker[0], name=broker[1]))
            if len(self._known) < _KNOWN_PATHS:
                self._known[path] = target
        return target


def named_broker(path: str) -> tuple[str, str] | None:
    """Return the namespace and the name in `/<namespace>/<broker>`, `None` for another path."""
    match = _PATH.match(path)
    return None if match is None else (match[1], match[2])


@dataclass(frozen=True, slots=True)
class _Unaddressed:
    """A Broker without an address, and the reason."""

    reason: str


class BrokerTable:
    """Finds Brokers by path; the last seen state stays valid."""

    def __init__(self, namespaces: Sequence[str], contact: Contact) -> None:
        """Serve these namespaces, or all if none is named.

        `contact` reports if the Brokers were read completely.
        """
        self._namespaces = namespaces
        self._contact = contact
        self._known: dict[str, Target | _Unaddressed] = {}

    def __len__(self) -> int:
        return len(self._known)

    @property
    def why_unready(self) -> str:
        """Why the Brokers are not known yet; "" once they are."""
        return self._contact.why_incomplete

    def find(self, path: str) -> Target | Answer:
        """Return the Broker of a path, or a problem.

        The path may be malformed, or its Broker unknown, without an address or not read yet.
        """
        known = self._known.get(path)
        if isinstance(known, Target):
            return known
        name = named_broker(path)
        if name is None:
            return responses.no_such_path(responses.CALL_PATH)
        broker = "/".join(name)
        if known is not None:
            return responses.unaddressed(broker, known.reason)
        if self.why_unready:
            return responses.starting(self.why_unready)
        return responses.unknown_broker(broker, self._unserved(name[0]))

    def put(self, document: Document) -> None:
        """Add or update a Broker."""
        self._known[_path(*name_of(document))] = _read(document)

    def drop(self, namespace: str, name: str) -> None:
        """Forget a deleted Broker."""
        self._known.pop(_path(namespace, name), None)

    def _unserved(self, namespace: str) -> str:
        if not self._namespaces or namespace in self._namespaces:
            return ""
        return f"; this shim serves the namespaces {', '.join(self._namespaces)} (BECKON_SHIM_NAMESPACES)"


def _path(namespace: str, name: str) -> str:
    return f"/{namespace}/{name}"


def _read(broker: Document) -> Target | _Unaddressed:
    status = broker.get("status")
    if not isinstance(status, Mapping):
        return _Unaddressed("it has no status yet; is a controller for its class running?")
    try:
        address = published_address(status, "its address")
    except Unaddressable as error:
        return _Unaddressed(str(error))
    if address is None:
        return _Unaddressed(_why_not(status))
    if not (address.url.isascii() and address.ca_certs.isascii()):
        return _Unaddressed("its address holds other characters than ASCII")
    return Target(address.url, address.ca_certs, address.audience)


def _why_not(status: Mapping[str, Any]) -> str:
    """Return the reason in the conditions, Addressable before Ready."""
    for name in ("Addressable", READY):
        state = condition(status, name)
        if state is not None and state.status != "True":
            logged = ": ".join(filter(None, (state.reason, state.message)))
            return f"its condition {name} is {state.status}" + (f", {logged}" if logged else "")
    return "it publishes no status.address"
