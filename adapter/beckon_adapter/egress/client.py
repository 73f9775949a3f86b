"""One request to an API, with host check, credential and redirects.

Each redirect is checked, too.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

import httpcore2
import httpx2

from beckon_adapter.egress.hosts import Credentials, NoCredential, SealedCredential
from beckon_adapter.request import HttpRequest
from beckon_runtime.egress import AllowedHosts, NotAllowed

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a name; raises `OSError` where it has none."""

_Option = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


async def resolve_host(name: str, port: int) -> Sequence[str]:
    """Ask the system's resolver."""
    addresses = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


class CheckedNetwork(httpcore2.AsyncNetworkBackend):
    """Connects to allowed hosts at allowed addresses; everything else is `NotAllowed`."""

    def __init__(self, allowed: AllowedHosts, resolver: Resolve = resolve_host) -> None:
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
                places = await self._resolve_places(host, port)
                return await self._connect_first(places, local_address, socket_options)
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

    async def _resolve_places(self, host: str, port: int) -> list[tuple[str, int]]:
        """Return the addresses and ports of a host.

        Resolved addresses are checked; an owner's `connect` address is used as it is.
        """
        entry = next(self._allowed.reached_at(host, port), None)
        if entry is None:
            raise NotAllowed(f"{self._allowed.caller} may not call {host}:{port} ({self._allowed.setting})")
        if entry.place is not None:
            return [entry.place]
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpcore2.ConnectError(f"{host} has no address: {error.strerror}") from None
        self._allowed.check_addresses(host, entry, addresses)
        return [(address, port) for address in addresses]

    async def _connect_first(
        self, places: list[tuple[str, int]], local_address: str | None, options: Iterable[_Option] | None
    ) -> httpcore2.AsyncNetworkStream:
        trouble: httpcore2.ConnectError | None = None
        for address, port in places:
            try:
                return await self._sockets.connect_tcp(address, port, None, local_address, options)
            except httpcore2.ConnectError as error:
                trouble = error
        raise trouble or httpcore2.ConnectError("the name has no address")


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


_HOPS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_SAFE = frozenset({"GET", "HEAD"})
_INFLATED = frozenset({"gzip", "x-gzip", "deflate"})
_EITHER_HEADER = 32 + zlib.MAX_WBITS  # of gzip or of zlib


class Unreachable(Exception):
    """The API gave no answer. `sent` is True if the API may have received the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class TooLarge(Exception):
    """The answer of the API is larger than the limit."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer of an API; `body` is without the request's secrets.

    `redirected` is True if an earlier request was answered by a redirect; it may have had its effect.
    """

    status: int
    media_type: str
    charset: str
    body: bytes = field(repr=False)
    retry_after: str = ""
    redirected: bool = False


@dataclass(frozen=True, slots=True)
class EgressClient:
    """Sends requests to allowed hosts, with credentials.

    `limit` is the largest answer in bytes, compressed or decompressed.
    """

    client: httpx2.AsyncClient
    allowed: AllowedHosts
    credentials: Credentials
    limit: int

    async def send_request(self, request: HttpRequest, credential: str | None, timeout: float) -> HttpAnswer:
        """Return the answer to a request within `timeout` seconds, redirects followed.

        Raises `NotAllowed` and `NoCredential` before anything is sent to a forbidden place, `Unreachable`
        and `TooLarge`.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._send_following(request, credential)
        except TimeoutError:
            raise Unreachable(f"did not answer within {timeout:g} seconds", sent=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(f"broke off ({type(error).__name__})", sent=True) from None

    async def _send_following(self, request: HttpRequest, credential: str | None) -> HttpAnswer:
        for hop in range(_HOPS + 1):
            url = httpx2.URL(request.url)
            self.allowed.find(url.scheme, url.host, url.port)
            sealed = self.credentials.seal(credential, url) if credential else SealedCredential()
            prepared = self._prepare_request(request, sealed)
            try:
                response = await self.client.send(prepared, stream=True, follow_redirects=False)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
                # The request that a redirect answered has been sent.
                raise Unreachable(f"cannot be reached ({type(error).__name__})", sent=hop > 0) from None
            try:
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    return replace(await self._read_answer(response, sealed), redirected=hop > 0)
                request, credential = _next_request(request, url, response, credential)
            finally:
                await response.aclose()
        raise NotAllowed(f"{httpx2.URL(request.url).host} redirects more than {_HOPS} times")

    def _prepare_request(self, request: HttpRequest, sealed: SealedCredential) -> httpx2.Request:
        headers = dict(request.headers)
        for name, value in sealed.headers.items():
            if name.lower() in headers:
                raise NoCredential(f"the rule sets the header {name}, which is its credential's; remove it")
            headers[name.lower()] = value
        url = httpx2.URL(request.url)
        for name, value in sealed.query.items():
            if name in url.params:
                raise NoCredential(f"the call sets the parameter {name!r}, which is its credential's")
            joined = f"{quote(name, safe='')}={quote(value, safe='')}"
            url = httpx2.URL(f"{url}{'&' if url.query else '?'}{joined}")
        return self.client.build_request(request.method, url, headers=headers, content=request.body or None)

    async def _read_answer(self, response: httpx2.Response, sealed: SealedCredential) -> HttpAnswer:
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self.limit:
                raise TooLarge(f"answered with more than {self.limit} bytes")
        kind, _, parameters = response.headers.get("content-type", "").partition(";")
        return HttpAnswer(
            response.status_code,
            kind.strip().lower(),
            _charset_of(parameters),
            sealed.hide(self._unpack_body(body, packing)),
            response.headers.get("retry-after", ""),
        )

    def _unpack_body(self, body: bytes, packing: str) -> bytes:
        """Decompress an answer's body, up to `limit` bytes.

        The adapter requests no compression, but a server may use it. A small body can unpack to
        gigabytes.
        """
        if packing in ("", "identity") or not body:
            return body
        if packing not in _INFLATED:
            raise Unreachable(
                f"answered in the encoding {packing[:20]!r}, which was not requested", sent=True
            )
        try:
            inflater = zlib.decompressobj(_EITHER_HEADER)
            unpacked = inflater.decompress(body, self.limit + 1)
        except zlib.error:
            raise Unreachable("answered with what cannot be unpacked", sent=True) from None
        if len(unpacked) > self.limit:
            raise TooLarge(f"answered with more than {self.limit} bytes")
        return unpacked


def _next_request(
    request: HttpRequest, url: httpx2.URL, response: httpx2.Response, credential: str | None
) -> tuple[HttpRequest, str | None]:
    """Return the request and credential after a redirect.

    Headers and credential are not sent to another origin. Raises `NotAllowed`.
    """
    try:
        target = url.join(response.headers["location"])
    except (httpx2.InvalidURL, ValueError):
        raise NotAllowed(f"{url.host} redirects to what is no URL") from None
    if url.scheme == "https" and target.scheme != "https":
        raise NotAllowed(f"{url.host} redirects from https to {target.scheme}, where others could listen")
    if target.userinfo:
        raise NotAllowed(f"{url.host} redirects to a URL with credentials in it")
    if response.status_code == 303 and request.method not in _SAFE:
        headers_left = tuple(pair for pair in request.headers if not pair[0].startswith("content-"))
        request = replace(request, method="GET", headers=headers_left, body=b"")
    moved = replace(request, url=str(target.copy_with(fragment=None)))
    if (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port):
        if request.method not in _SAFE and response.status_code in (301, 302):
            raise NotAllowed(
                f"{url.host} redirects a {request.method}; write the address it leads to into the rule"
            )
        return moved, credential
    if request.method not in _SAFE:
        raise NotAllowed(
            f"{url.host} redirects a {request.method} to {target.host}; write that into the rule"
        )
    return replace(moved, headers=()), None


def _charset_of(parameters: str) -> str:
    for each in parameters.split(";"):
        name, _, value = each.partition("=")
        if name.strip().lower() == "charset":
            return value.strip().strip('"').lower()
    return ""
