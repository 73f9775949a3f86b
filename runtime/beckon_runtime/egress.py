"""Requests to the hosts that a service's owner allows, and to no forbidden address behind their names."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from pydantic import BaseModel, ConfigDict, Field, field_validator

_PORTS = {"https": 443, "http": 80}
_PATTERN = re.compile(
    r"((?P<scheme>https?)://)?(?P<host>(\*\.)?[a-z0-9_]([a-z0-9._-]*[a-z0-9])?|\[[0-9a-f:.]+\])(:(?P<port>[0-9]{1,5}))?/?"
)


class NotAllowed(Exception):
    """A host or an address that may not be called; the message names the setting in which it can be."""


class WithoutAddress(NotAllowed):
    """A Service of the manifests that has no address on this machine, or none yet."""


class AllowedHost(BaseModel):
    """One entry of the setting.

    `host` is a name such as `api.example.com`, `*.example.com` for every name below it, or an origin
    such as `http://shop.default.svc.cluster.local:8080`. `private` lets it be on a private network;
    `connect` (ADDRESS:PORT) is where to connect to instead of what its name resolves to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str
    private: bool = False
    connect: str = Field("", pattern=r"^([0-9a-fA-F.]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$|^$")

    @field_validator("host")
    @classmethod
    def _is_pattern(cls, value: str) -> str:
        _Pattern.from_text(value)
        return value

    @property
    def place(self) -> tuple[str, int] | None:
        """The address and the port of `connect`, `None` without it."""
        address, _, port = self.connect.rpartition(":")
        return (address.strip("[]"), int(port)) if port else None

    def matches(self, scheme: str, host: str, port: int) -> bool:
        """Return True if this entry is for an origin."""
        return _Pattern.from_text(self.host).matches(scheme, host, port)


@dataclass(frozen=True, slots=True)
class _Pattern:
    scheme: str
    host: str
    port: int

    @classmethod
    def from_text(cls, text: str) -> "_Pattern":
        """Read an entry; raise `ValueError` with the cure."""
        match = _PATTERN.fullmatch(text.lower())
        if match is None:
            raise ValueError(
                f"{text[:80]!r} is no host; write api.example.com, *.example.com, or http://host:8080"
            )
        if match["host"].startswith("*.") and "." not in match["host"][2:]:
            raise ValueError(f"{text[:80]!r} would allow all of a top-level domain; name a domain below it")
        scheme = match["scheme"] or "https"
        return cls(scheme, match["host"], int(match["port"] or _PORTS[scheme]))

    def matches(self, scheme: str, host: str, port: int) -> bool:
        host = host.lower().removesuffix(".")
        if (scheme, port) != (self.scheme, self.port):
            return False
        if self.host.startswith("*."):
            return host.endswith(self.host[1:]) and len(host) > len(self.host) - 1
        return host == self.host.strip("[]")


class AllowedHosts:
    """All entries; the first one for an origin decides.

    `caller` and `setting` are for messages: the service that calls, and the setting with the entries.
    `services` are the Services that a laptop runs itself, and `starting` the names of those without an
    address. Both change with time; a cluster has none.
    """

    def __init__(self, entries: Iterable[AllowedHost], caller: str, setting: str) -> None:
        self.caller = caller
        self.setting = setting
        self._entries = tuple(entries)
        self.services: tuple[AllowedHost, ...] = ()
        self.starting: tuple[AllowedHost, ...] = ()

    def find(self, scheme: str, host: str, port: int | None) -> AllowedHost:
        """Return the entry for an origin; raise `NotAllowed`, `WithoutAddress` for one that starts."""
        number = port or _PORTS.get(scheme, 0)
        for entry in (*self._entries, *self.services):
            if entry.matches(scheme, host.strip("[]"), number):
                return entry
        origin = host if (scheme, number) == ("https", 443) else f"{scheme}://{host}:{number}"
        if any(entry.matches(scheme, host.strip("[]"), number) for entry in self.starting):
            raise WithoutAddress(f"{self.caller} cannot call {origin}: its Service has no address here")
        raise NotAllowed(
            f"{self.caller} may not call {origin}: its owner has not allowed it ({self.setting})"
        )

    def check_addresses(self, host: str, entry: AllowedHost, addresses: Sequence[str]) -> None:
        """Raise `NotAllowed` for a host with any forbidden address.

        It cannot be predicted which of its addresses comes next.
        """
        for address in addresses:
            if why := refusal_reason(address, private=entry.private):
                cure = f"; if it should be, write private: true beside it ({self.setting})"
                raise NotAllowed(f"{self.caller} may not call {host}: {why}{'' if entry.private else cure}")

    def reached_at(self, host: str, port: int) -> Iterator[AllowedHost]:
        """Yield the entries for a host and port, of any scheme."""
        for entry in (*self._entries, *self.services):
            if any(entry.matches(scheme, host, port) for scheme in _PORTS):
                yield entry


Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# No API is served there, but clouds give credentials to machines; 0.0.0.0 is this machine.
# No setting opens them. 168.63.129.16 is Azure's, 100.100.100.200 Alibaba's, 192.0.0.192 Oracle's.
_NEVER: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.100.100.200/32",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "192.0.0.192/32",
        "224.0.0.0/4",
        "255.255.255.255/32",
        "::/128",
        "fd00:ec2::/32",
        "fd20:ce::254/128",
        "fe80::/10",
        "fec0::/10",
        "ff00::/8",
    )
)
# What ipaddress of some versions of Python takes for global (IANA's special-purpose registries).
_SPECIAL: tuple[Network, ...] = tuple(
    ip_network(text)
    for text in (
        "100.64.0.0/10",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "2002::/16",
        "3fff::/20",
    )
)
_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_ISATAP = (b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe")


def refusal_reason(text: str, *, private: bool) -> str | None:
    """Return the reason to refuse an address, `None` if it is allowed.

    `private` allows private networks and this machine, but never link-local addresses and those at which
    clouds hand out credentials.
    """
    address = ip_address(text)
    for form in _embedded_addresses(address):
        if _within_networks(form, _NEVER):
            return f"{address} is link-local, or an address of a cloud's metadata"
    if private or _is_public(address):
        return None
    return f"{address} is not on the public internet"


def _is_public(address: Address) -> bool:
    """Return True if an address is on the public internet.

    The IPv4 addresses embedded in it must be public as well; for a mapped or NAT64 address only those
    count.
    """
    if isinstance(address, IPv4Address):
        return address.is_global and not _within_networks(address, _SPECIAL)
    if address.ipv4_mapped is not None or address in _NAT64:
        # The kernel, or a gateway of the network, goes to the IPv4 address within: that is what counts.
        return all(_is_public(form) for form in _embedded_addresses(address) if form != address)
    if address not in _UNICAST or not address.is_global or _within_networks(address, _SPECIAL):
        return False
    return all(_is_public(form) for form in _embedded_addresses(address) if form != address)


def _embedded_addresses(address: Address) -> Iterator[Address]:
    """Yield an address and the IPv4 addresses embedded in it. Those are mapped, translated or tunnelled."""
    yield address
    if isinstance(address, IPv4Address):
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    packed = address.packed
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1) or packed[8:12] in _ISATAP:
        yield IPv4Address(packed[12:])


def _within_networks(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
