"""Which Host and Origin a request may name: no web page may use its visitor's browser to call tools."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SHOWN = 80  # characters of a header


@dataclass(frozen=True, slots=True)
class Closed:
    """A request that is turned away: its HTTP status, the cause and the cure."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Doors:
    """Names of this service and origins of web pages that are let in.

    `hosts` are names without a port; none means every name. `origins` are as browsers send them,
    such as `https://chat.example.com`. Pages of this very machine are let in where the request
    is for a loopback name: then whoever runs the page runs this service too.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    @classmethod
    def at(cls, address: str, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> "Doors":
        """Return the doors of a service that listens on an address.

        On loopback every name but a loopback one is DNS rebinding, unless `hosts` says otherwise.
        """
        names = frozenset(name.lower() for name in hosts)
        if not names and address in _LOOPBACK:
            names = _LOOPBACK
        return cls(names, frozenset(origin.lower().rstrip("/") for origin in origins))

    def closed_for(self, headers: Mapping[str, str]) -> Closed | None:
        """Return why a request is turned away, `None` where it is welcome."""
        host = _name(f"//{headers.get('host', '')}")
        if self.hosts and host not in self.hosts:
            return Closed(421, f"this service does not answer for the host {host[:_SHOWN]!r}{_CURE}")
        origin = headers.get("origin")
        if origin is None or self.lets_in(origin, host):
            return None
        return Closed(403, f"web pages of {origin[:_SHOWN]!r} may not call this service{_CURE}")

    def lets_in(self, origin: str, host: str) -> bool:
        """Whether pages of an origin may call this service by this name."""
        if origin.lower() in self.origins:
            return True
        return host in _LOOPBACK and _name(origin) in _LOOPBACK


_CURE = "; whoever runs it can allow that with BECKON_MCP_HOSTS and BECKON_MCP_ORIGINS"


def _name(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""
