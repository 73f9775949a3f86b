"""The IP addresses allowed for requests, in all their forms."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Nobody serves an API there, but clouds hand credentials to machines; 0.0.0.0 is this machine.
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


def refusal(text: str, *, private: bool) -> str | None:
    """Return the reason to refuse an address, `None` if it is allowed.

    `private` allows private networks and this machine, but never link-local addresses and those at which
    clouds hand out credentials.
    """
    address = ip_address(text)
    for form in _forms(address):
        if _within(form, _NEVER):
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
        return address.is_global and not _within(address, _SPECIAL)
    if address.ipv4_mapped is not None or address in _NAT64:
        # The kernel, or a gateway of the network, goes to the IPv4 address within: that is what counts.
        return all(_is_public(form) for form in _forms(address) if form != address)
    if address not in _UNICAST or not address.is_global or _within(address, _SPECIAL):
        return False
    return all(_is_public(form) for form in _forms(address) if form != address)


def _forms(address: Address) -> Iterator[Address]:
    """Yield an address and the IPv4 addresses embedded in it.

    Those are mapped, translated or tunnelled.
    """
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


def _within(address: Address, networks: tuple[Network, ...]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
