"""The permitted Host and Origin of requests.

They are the defence against web pages of strangers.

A service on loopback has no credentials: it trusts this machine. A browser on this machine runs pages of
strangers, and reaches every port. A page whose domain was made to point at 127.0.0.1 (DNS rebinding) sends
its own domain in Host; a page that simply posts to a port sends its own address in Origin. No page can
change either header.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from beckon_runtime.problem import Problem

HOSTS_SETTING = "BECKON_ALLOWED_HOSTS"
ORIGINS_SETTING = "BECKON_ALLOWED_ORIGINS"

_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[^\s/@:\[\]?#\\]{1,253})(?::(?P<port>\d{0,5}))?")
_ORIGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,30})://(?P<authority>[^/?#]+)")
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SHOWN = 80  # characters of a header

Headers = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The policy of a service for requests of browsers.

    With `loopback` the names of this machine are allowed, and `hosts` as well. Elsewhere only `hosts` and
    IP addresses are allowed. Elsewhere and without `hosts`, every name is allowed, and no page is refused
    unless `pages_checked`.

    A page is allowed if it is one of `origins`, or if it is of the very host and port that it calls and
    that host was checked. With `local_pages` it is also allowed if a server of this machine sent it, on any
    port.
    """

    loopback: bool = False
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = field(default=frozenset())
    local_pages: bool = False
    pages_checked: bool = False

    @classmethod
    def at(
        cls, address: str, hosts: str = "", origins: str = "", *, local_pages: bool = False
    ) -> "OriginPolicy":
        """Return the policy of a service, by its listening address.

        `hosts` and `origins` are lists with commas, as the settings have them; raises `ValueError`.
        """
        return cls(is_loopback(address), parse_hosts(hosts), parse_origins(origins), local_pages)

    def refuse(self, headers: Headers) -> Problem | None:
        """Return why a request is refused, or `None`; names of headers are in lower case.

        400 for a request whose Host is missing or ambiguous, 421 for a Host that is not of this service,
        403 for a page of another origin.
        """
        checks_host = self.loopback or bool(self.hosts)
        if not checks_host and not self.pages_checked:
            return None
        hosts, origins = _read_values(headers)
        host = _split_authority(hosts[0]) if len(hosts) == 1 else None
        if checks_host and host is None:
            return unclear_host()
        if checks_host and host is not None and not self._serves(host[0]):
            return _wrong_host(hosts[0])
        for origin in origins:
            if host is None or not self._allows(origin, *host, same_origin=checks_host):
                return _foreign_page(origin)
        return None

    def _serves(self, name: str) -> bool:
        if name in self.hosts:
            return True
        if self.loopback:
            return _is_local(name)
        # Rebinding needs a name. Probes and Prometheus call a Pod by its address.
        return is_address(name)

    def _allows(self, origin: str, host: str, host_port: int | None, *, same_origin: bool) -> bool:
        """Return True if a page may call this host.

        `same_origin` says that the host itself is known to be right.
        """
        parts = _split_origin(origin)
        if parts is None:
            return False  # "null" too: a sandboxed frame, or a file
        scheme, name, port = parts
        if origin.lower() in self.origins:
            return True
        if self.local_pages and _is_local(host) and _is_local(name):
            return True
        default = _DEFAULT_PORTS.get(scheme)
        return same_origin and name == host and (port or default) == (host_port or default)


def _read_values(headers: Headers) -> tuple[list[str], list[str]]:
    """Return the values of all headers Host, and of all headers Origin."""
    hosts, origins = [], []
    for name, value in headers:
        if name == b"host":
            hosts.append(value.decode("latin-1"))
        elif name == b"origin":
            origins.append(value.decode("latin-1"))
    return hosts, origins


@lru_cache(maxsize=256)  # clients call by few names, with every request
def is_loopback(host: str) -> bool:
    """Return True for a name or address of this machine: 127.0.0.0/8, ::1, localhost."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().removesuffix(".") == "localhost"


def parse_hosts(text: str) -> frozenset[str]:
    """Return the names in a list with commas, in lower case; raise `ValueError` with the cure."""
    names = frozenset(part.strip().lower().strip("[]") for part in text.split(",")) - {""}
    for name in sorted(names):
        if not _NAME.fullmatch(name) and not is_address(name):
            raise ValueError(
                f"{name[:_SHOWN]!r} is no host name; write names without scheme, port and *, such as "
                "beckon.example.com"
            )
    return names


def parse_origins(text: str) -> frozenset[str]:
    """Return the origins in a list with commas, in lower case; raise `ValueError` with the cure."""
    origins = frozenset(part.strip().lower().rstrip("/") for part in text.split(",")) - {""}
    for origin in sorted(origins):
        if _split_origin(origin) is None:
            raise ValueError(
                f"{origin[:_SHOWN]!r} is no origin; write scheme, host and port as browsers send them, "
                "such as https://chat.example.com"
            )
    return origins


@lru_cache(maxsize=256)  # see `is_loopback`
def _split_authority(text: str) -> tuple[str, int | None] | None:
    """Return name and port of `name[:port]`, or `None`."""
    match = _AUTHORITY.fullmatch(text.strip())
    if match is None:
        return None
    port = match["port"]
    return match["name"].lower().strip("[]").removesuffix("."), int(port) if port else None


def _split_origin(text: str) -> tuple[str, str, int | None] | None:
    """Return scheme, name and port of an origin, or `None`."""
    match = _ORIGIN.fullmatch(text)
    authority = _split_authority(match["authority"]) if match else None
    return (match["scheme"].lower(), *authority) if match and authority else None


def _is_local(name: str) -> bool:
    """Return True if browsers take a name for this machine.

    No browser looks up NAME.localhost (RFC 6761, 6.3).
    """
    return is_loopback(name) or name.endswith(".localhost")


@lru_cache(maxsize=256)
def is_address(name: str) -> bool:
    """Return True if a name is an IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def unclear_host() -> Problem:
    """Return the refusal of a request without a Host, or with several."""
    detail = "the request has no usable header Host, or several; send one, such as Host: localhost:8080"
    return Problem(400, "bad-host", "Bad request", detail)


def _wrong_host(host: str) -> Problem:
    return Problem(
        421,
        "host-not-allowed",
        "Misdirected request",
        f"this service does not answer for the host {host[:_SHOWN]!r}; "
        f"call it by localhost or by its address, or allow the name with {HOSTS_SETTING}",
    )


def _foreign_page(origin: str) -> Problem:
    return Problem(
        403,
        "origin-not-allowed",
        "Forbidden",
        f"web pages of {origin[:_SHOWN]!r} may not call this service; allow them with {ORIGINS_SETTING}",
    )
