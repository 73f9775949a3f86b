"""Posting events: HTTP/1.1 over kept-alive connections, without a task per post.

It is for the posts of shim and broker, of which each call needs some: one request, one whole answer. A
general client costs more CPU than all the rest of a call: with aiohttp in its place the shim took 1.8 times
as much (`bench/shim`). The parser is httptools', as in uvicorn.
"""

import asyncio
import base64
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from urllib.parse import SplitResult, quote, unquote, urlsplit

from beckon_runtime.posts import Ack, Post, PostConnection, RawHeader, Target


@lru_cache(maxsize=64)
def trusting(ca_certs: str) -> ssl.SSLContext:
    """Return a TLS context with the system's and these PEM certificates.

    It verifies names and certificates. Raises `OSError` or `ValueError` for certificates that cannot be read.
    The contexts are cached, because reading the system's store takes milliseconds in which no call goes on.
    """
    context = ssl.create_default_context()
    if ca_certs:
        context.load_verify_locations(cadata=ca_certs)
    return context


_CONNECT_SECONDS = 10.0
_OPENING_AT_ONCE = 64
IDLE_SECONDS = 60.0
_LONGEST_BODY = 65_536
_SWEEP_SECONDS = 1.0
_KNOWN_TARGETS = 4096


_QUOTED = "/%:@!$&'()*+,;=~?[]"  # what a path or a query of RFC 3986 has as it is, and brackets


@dataclass(frozen=True, slots=True)
class _Limits:
    """The seconds of a connection to open and to be idle, and the bytes of a body."""

    connect_seconds: float
    idle_seconds: float
    longest_body: int


@dataclass(frozen=True, slots=True)
class _ParsedTarget:
    """A parsed target: its connections, and the start of its requests."""

    pool: "_Pool"
    start: bytes


class PostClient:
    """Posts events to Brokers and subscribers; each post ends in one call of its callback."""

    def __init__(
        self,
        seconds: float,
        connect_seconds: float = _CONNECT_SECONDS,
        *,
        repeats: bool = True,
        idle_seconds: float = IDLE_SECONDS,
        longest_body: int = _LONGEST_BODY,
    ) -> None:
        """Give every post `seconds` for its answer, and every connection so many to open and to be idle.

        With `repeats` a post whose kept-alive connection was lost goes out once more: its receiver must
        recognise a second delivery. Of an answer's body `longest_body` bytes are read.
        """
        self._seconds = seconds
        self._repeats = repeats
        self._limits = _Limits(connect_seconds, idle_seconds, longest_body)
        self._loop = asyncio.get_running_loop()
        self._targets: dict[Target, _ParsedTarget] = {}
        self._pools: dict[tuple[str, str, int, str], _Pool] = {}
        self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)

    def __len__(self) -> int:
        """Return how many posts have no answer yet."""
        return sum(pool.posts for pool in self._pools.values())

    @property
    def known(self) -> int:
        """How many targets are remembered; bounded, since strangers name them."""
        return len(self._targets)

    def post(
        self,
        target: Target,
        headers: list[RawHeader],
        body: bytes,
        then: Callable[[Ack], None],
        begin: Callable[[], bool] | None = None,
        *,
        seconds: float | None = None,
    ) -> Post:
        """Post an event; `then` gets the answer, never before this returns.

        `begin` is called when the event goes out, which may be later, and withdraws it by returning false.
        `seconds` replace those of every post, to the second. Raises `ValueError` for a host that is no name.
        """
        parsed = self._targets.get(target) or self._parse_target(target)
        parts = [parsed.start]
        for name, value in headers:
            parts += (name, b": ", value, b"\r\n")
        parts += (b"content-length: %d\r\n\r\n" % len(body), body)
        deadline = self._loop.time() + (self._seconds if seconds is None else seconds)
        post = Post(b"".join(parts), then, deadline, begin, self._repeats)
        parsed.pool.send(post)
        return post

    async def deliver(
        self, target: Target, headers: list[RawHeader], body: bytes, seconds: float | None = None
    ) -> Ack:
        """Post an event and wait for the answer, at most `seconds`, in place of those of every post.

        After them, and if the waiting is cancelled, the event is withdrawn, or its connection closed.
        """
        acknowledged: asyncio.Future[Ack] = self._loop.create_future()

        def settle(ack: Ack) -> None:
            if not acknowledged.done():
                acknowledged.set_result(ack)

        allowed = self._seconds if seconds is None else seconds
        post = self.post(target, headers, body, settle, lambda: not acknowledged.done(), seconds=allowed)
        timer = self._loop.call_later(allowed, lambda: post.fail(f"no answer within {allowed:g} s"))
        try:
            return await acknowledged
        finally:
            timer.cancel()
            if post.connection is not None:
                post.connection.abandon(post)

    async def close(self) -> None:
        """Close every connection; open posts end without an answer."""
        self._sweeper.cancel()
        for pool in self._pools.values():
            await pool.close()

    def _parse_target(self, target: Target) -> _ParsedTarget:
        parts = urlsplit(target.url)
        host = parts.hostname or ""
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        # Other certificates are other connections: an old session is not resumed.
        origin = (parts.scheme, host, port, target.ca_certs)
        pool = self._pools.get(origin)
        if pool is None:
            trust = partial(trusting, target.ca_certs) if secure else None
            pool = self._pools[origin] = _Pool(host, port, trust, self._limits)
        if len(self._targets) >= _KNOWN_TARGETS:
            self._targets.clear()
        parsed = self._targets[target] = _ParsedTarget(pool, _start_of_requests(parts))
        return parsed

    def _sweep(self) -> None:
        """End overdue posts and close idle connections, with one timer."""
        self._sweeper = self._loop.call_later(_SWEEP_SECONDS, self._sweep)
        for origin, pool in list(self._pools.items()):
            pool.sweep(self._loop.time())
            if pool.unused:
                del self._pools[origin]
                # Which of them mean that pool is not worth knowing: they are made again.
                self._targets.clear()


def _start_of_requests(parts: SplitResult) -> bytes:
    """Return the first lines of each request to a URL; its user and password become `authorization`."""
    path = quote((parts.path or "/") + (f"?{parts.query}" if parts.query else ""), safe=_QUOTED)
    user, _, host = parts.netloc.rpartition("@")
    name = host.encode("ascii" if host.isascii() else "idna")
    start = b"POST %b HTTP/1.1\r\nhost: %b\r\n" % (path.encode("ascii"), name)
    if not user:
        return start
    return start + b"authorization: Basic %b\r\n" % base64.b64encode(unquote(user).encode())


class _Pool:
    """The connections to one origin: idle ones are reused, the last used first.

    At most 64 are opened at a time. Meanwhile further posts take the first connection that is free, so a
    burst does not open a connection for each post.
    """

    def __init__(
        self, host: str, port: int, trust: Callable[[], ssl.SSLContext] | None, limits: _Limits
    ) -> None:
        self._address = (host, port)
        self._trust = trust
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._open: set[PostConnection] = set()
        self._idle: list[PostConnection] = []
        self._queue: deque[Post] = deque()
        self._opening: set[asyncio.Task[None]] = set()

    @property
    def posts(self) -> int:
        """How many posts wait here for a connection or an answer."""
        return len(self._queue) + len(self._open) - len(self._idle)

    @property
    def unused(self) -> bool:
        """True if nothing is open, opening or queued here."""
        return not (self._open or self._opening or self._queue)

    def send(self, post: Post) -> None:
        """Send on an idle connection, or queue for the next one."""
        while self._idle:
            connection = self._idle.pop()
            if connection.usable():
                if not _sent(connection, post):
                    self.free(connection)
                return
        self._queue.append(post)
        self._grow()

    def free(self, connection: PostConnection) -> None:
        """Take back a connection after the answer to its post."""
        while self._queue:
            if _sent(connection, self._queue.popleft()):
                return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)

    def lost(self, connection: PostConnection, again: Post | None) -> None:
        """Forget a connection; repeat the post `again` on a fresh one."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if again is not None:
            self._queue.appendleft(again)
        if self._queue:
            self._grow()

    def sweep(self, now: float) -> None:
        """End overdue posts and close idle connections."""
        for connection in list(self._open):
            if connection.overdue(now):
                connection.give_up("it did not answer in time")
        for connection in list(self._idle):
            if now - connection.idle_since > self._limits.idle_seconds:
                connection.close()
        while self._queue and self._queue[0].deadline <= now:
            self._queue.popleft().fail("there was no free connection in time")

    async def close(self) -> None:
        """Close every connection and fail the remaining posts."""
        for task in list(self._opening):
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        self._fail_queue("its sender is shutting down")
        for connection in list(self._open):
            connection.give_up("its sender is shutting down")

    def _grow(self) -> None:
        if len(self._opening) < min(_OPENING_AT_ONCE, len(self._queue)):
            task = self._loop.create_task(self._connect())
            self._opening.add(task)
            task.add_done_callback(self._connected)

    def _connected(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self._grow()

    async def _connect(self) -> None:
        try:
            context = None if self._trust is None else self._trust()
            async with asyncio.timeout(self._limits.connect_seconds):
                _, connection = await self._loop.create_connection(
                    lambda: PostConnection(self, self._limits.longest_body), *self._address, ssl=context
                )
        except (OSError, ValueError) as error:
            self._refused(_reason(error))
            return
        if connection.usable():
            self._open.add(connection)
            self.free(connection)
        else:
            self._refused("it closed the connection at once")

    def _refused(self, why: str) -> None:
        """Fail one post per failed connection, or all without open connections."""
        reason = "cannot connect to {}:{}: {}".format(*self._address, why)
        if self._open and self._queue:
            self._queue.popleft().fail(reason)
        else:
            self._fail_queue(reason)

    def _fail_queue(self, reason: str) -> None:
        queue, self._queue = self._queue, deque()  # who is answered may post again
        for post in queue:
            post.fail(reason)


def _reason(error: OSError | ValueError) -> str:
    """Return the cause of a failed connection, without the number of the system's error."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or "timed out"


def _sent(connection: PostConnection, post: Post) -> bool:
    """Send a post unless it is withdrawn."""
    if post.begin is not None and not post.begin():
        post.fail("it was withdrawn")
        return False
    connection.send(post)
    return True
