"""The Brokers of a cluster, as they were last seen: where each takes events, or why it takes none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beckon_contract.addresses import Unaddressable, published_address
from beckon_contract.conditions import READY, condition
from beckon_shim import endings
from beckon_shim.messages import Answer
from beckon_shim.targets import Target, named_broker

EVERYWHERE = "*"


@dataclass(frozen=True, slots=True)
class _Unaddressed:
    """A Broker that takes no events yet, and why."""

    reason: str


class BrokerTable:
    """Finds Brokers by path among those of some namespaces; what was seen last stays in force."""

    def __init__(self, namespaces: Sequence[str]) -> None:
        """Serve these namespaces, all of them where none is named."""
        self.scopes = tuple(namespaces) or (EVERYWHERE,)
        self._known: dict[str, Target | _Unaddressed] = {}
        self._awaited = dict.fromkeys(self.scopes, "the API server has not answered yet")

    def __len__(self) -> int:
        return len(self._known)

    @property
    def why_unready(self) -> str:
        """Why the Brokers are not known yet, by the first scope that was never listed."""
        return next(iter(self._awaited.values()), "")

    def find(self, path: str) -> Target | Answer:
        """Return where the Broker of a path is, or a problem: unknown, or without an address."""
        found = self._known.get(path)
        if isinstance(found, Target):
            return found
        named = named_broker(path)
        if named is None:
            return endings.no_such_path(endings.CALL_PATH)
        broker = "/".join(named)
        if found is not None:
            return endings.unaddressed(broker, found.reason)
        if self._awaited:
            return endings.starting(self.why_unready)
        return endings.unknown_broker(broker, self._unserved(named[0]))

    def failed(self, scope: str, reason: str) -> None:
        """Note why a scope cannot be listed, until it can."""
        if scope in self._awaited:
            self._awaited[scope] = reason

    def replace(self, scope: str, brokers: Iterable[Mapping[str, Any]]) -> None:
        """Take a whole list of a scope: what is not in it is gone."""
        listed = {_path(broker): _read(broker) for broker in brokers}
        kept = () if scope == EVERYWHERE else self._known.items()
        self._known = {path: known for path, known in kept if not path.startswith(f"/{scope}/")} | listed
        self._awaited.pop(scope, None)

    def put(self, broker: Mapping[str, Any]) -> None:
        """Take one Broker as it is now."""
        self._known[_path(broker)] = _read(broker)

    def remove(self, broker: Mapping[str, Any]) -> None:
        """Forget one Broker."""
        self._known.pop(_path(broker), None)

    def _unserved(self, namespace: str) -> str:
        if EVERYWHERE in self.scopes or namespace in self.scopes:
            return ""
        return f"; this shim serves the namespaces {', '.join(self.scopes)} (BECKON_SHIM_NAMESPACES)"


def _path(broker: Mapping[str, Any]) -> str:
    metadata = broker["metadata"]
    return f"/{metadata['namespace']}/{metadata['name']}"


def _read(broker: Mapping[str, Any]) -> Target | _Unaddressed:
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
    """Return what the conditions say, the one about the address before the summary."""
    for name in ("Addressable", READY):
        found = condition(status, name)
        if found is not None and found.status != "True":
            told = ": ".join(filter(None, (found.reason, found.message)))
            return f"its condition {name} is {found.status}" + (f", {told}" if told else "")
    return "it publishes no status.address"
