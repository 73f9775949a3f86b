"""Connections to checked addresses only.

A name is resolved once for a connection; each of its addresses must be allowed; and the connection is
made to one of those, so that no second answer of a name server counts (DNS rebinding). TLS and the header
Host still use the name.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore2
import httpx2

from beckon_adapter.outbound.addresses import refusal
from beckon_adapter.outbound.hosts import SETTING, AllowedHost, AllowedHosts, NotAllowed

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a name; raises `OSError` where it has none."""

_Option = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


async def resolve(name: str, port: int) -> Sequence[str]:
    """Ask the system's resolver."""
    found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to allowed hosts at allowed addresses; everything else is `NotAllowed`."""

    def __init__(self, allowed: AllowedHosts, resolver: Resolve = resolve) -> None:
        self._allowed = allowed
        self._resolve = resolver
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[_Option] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first answering address; raise `NotAllowed`.

        The addresses of the host are tried in order.
        """
        try:
            async with asyncio.timeout(timeout):
                places = await self._places(host, port)
                return await self._first(places, local_address, socket_options)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[_Option] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no API is behind a socket of this machine."""
        raise NotAllowed("the HTTP adapter connects to no Unix sockets")

    async def sleep(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds)

    async def _places(self, host: str, port: int) -> list[tuple[str, int]]:
        """Return the addresses and ports of a host.

        Resolved addresses are checked; an owner's `connect` address is used as it is.
        """
        entry = next(self._allowed.reached_at(host, port), None)
        if entry is None:
            raise NotAllowed(f"the HTTP adapter may not call {host}:{port} ({SETTING})")
        if entry.connect:
            address, _, number = entry.connect.rpartition(":")
            return [(address.strip("[]"), int(number))]
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} has no address: {error.strerror}") from None
        _check(host, entry, addresses)
        return [(address, port) for address in addresses]

    async def _first(
        self, places: list[tuple[str, int]], local_address: str | None, options: Iterable[_Option] | None
    ) -> httpcore2.AsyncNetworkStream:
        trouble: httpcore2.ConnectError | None = None
        for address, port in places:
            try:
                return await self._sockets.connect_tcp(address, port, None, local_address, options)
            except httpcore2.ConnectError as error:
                trouble = error
        raise trouble or httpcore2.ConnectError("the name has no address")


def _check(host: str, entry: AllowedHost, addresses: Sequence[str]) -> None:
    """Refuse a host with any forbidden address.

    It cannot be predicted which of its addresses comes next.
    """
    for address in addresses:
        if why := refusal(address, private=entry.private):
            cure = "" if entry.private else f"; if it should be, write private: true beside it ({SETTING})"
            raise NotAllowed(f"the HTTP adapter may not call {host}: {why}{cure}")


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """The transport of httpx2 over a `CheckedNetwork`, without a proxy.

    Without `tls` it trusts the certificates that the system trusts, or those in `SSL_CERT_FILE`.
    """

    def __init__(self, network: CheckedNetwork, connections: int, tls: ssl.SSLContext | None = None) -> None:
        context = tls or httpx2.create_ssl_context()
        super().__init__(verify=context, trust_env=False)
        # httpx2 hands no network backend on to the pool that it makes, so the pool is made here.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=30.0,
            network_backend=network,
        )
