"""Tokens for Brokers with OIDC: fetched when needed, renewed early, never logged."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

# Of a token's life.
_RENEW_AT = 0.8
_END_AT = 0.95
_PAUSE_SECONDS = 2.0
_FRESH_SECONDS = 10.0

logger = logging.getLogger(__name__)


class NoToken(Exception):
    """No token is available; the message says why, without any secret."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token and its lifetime in seconds."""

    token: bytes = field(repr=False)
    seconds: float


Issue = Callable[[str], Awaitable[IssuedToken]]


@dataclass(slots=True)
class _Held:
    """The token for one audience, its times, and the running fetch. Times are in the loop's clock."""

    token: bytes = field(default=b"", repr=False)
    issued_at: float = 0.0
    renew_at: float = 0.0
    ends_at: float = 0.0
    refusal: str = ""
    try_again_at: float = 0.0
    fetching: asyncio.Task[None] | None = None


class Bearers:
    """One token for each audience, shared by all posts.

    A token is renewed by the first post after 80 % of its life; that post still uses the old one. After a
    refusal no token is requested for two seconds.
    """

    def __init__(self, issue: Issue, fresh_seconds: float = _FRESH_SECONDS) -> None:
        """`issue` returns a new token for an audience or raises `NoToken`."""
        self._issue = issue
        self._fresh_seconds = fresh_seconds
        self._loop = asyncio.get_running_loop()
        self._held: dict[str, _Held] = {}

    def cached_token(self, audience: str) -> bytes | None:
        """Return the held token, or `None` if it is not valid."""
        cached = self._held.get(audience)
        now = self._loop.time()
        if cached is None or now >= cached.ends_at:
            return None
        if now >= cached.renew_at:
            self._renew(audience, cached)
        return cached.token

    async def fetch(self, audience: str) -> bytes:
        """Return a valid token, a new one if need be; raise `NoToken`."""
        cached = self._held.setdefault(audience, _Held())
        if self._loop.time() >= cached.ends_at:
            task = self._renew(audience, cached)
            if task is not None:
                await asyncio.shield(task)
        if self._loop.time() >= cached.ends_at:
            raise NoToken(f"no token for the audience {audience!r} can be had: {cached.refusal}")
        return cached.token

    def drop(self, audience: str, token: bytes) -> bool:
        """Forget a refused token; return True if a retry may succeed.

        A fresh token is not forgotten: the Broker refuses us, not our token, and the API server must not get
        a request for every call.
        """
        cached = self._held.get(audience)
        if cached is None or cached.token != token:
            return True
        if self._loop.time() - cached.issued_at < self._fresh_seconds:
            return False
        cached.ends_at = 0.0
        return True

    async def close(self) -> None:
        """End every fetch."""
        tasks = [cached.fetching for cached in self._held.values() if cached.fetching is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _renew(self, audience: str, held: _Held) -> asyncio.Task[None] | None:
        """Return the running fetch, or start one. It is `None` shortly after a refusal."""
        if held.fetching is None and self._loop.time() >= held.try_again_at:
            held.fetching = self._loop.create_task(self._fetch(audience, held))
        return held.fetching

    async def _fetch(self, audience: str, held: _Held) -> None:
        try:
            issued = await self._issue(audience)
        except NoToken as error:
            held.refusal = str(error)
            held.try_again_at = self._loop.time() + _PAUSE_SECONDS
            logger.warning("no token for the audience %r can be had: %s", audience, error)
        else:
            held.token, held.refusal = issued.token, ""
            held.issued_at = self._loop.time()
            held.renew_at = held.issued_at + _RENEW_AT * issued.seconds
            held.ends_at = held.issued_at + _END_AT * issued.seconds
        finally:
            held.fetching = None


async def no_account(audience: str) -> IssuedToken:
    """Raise `NoToken`: this shim has no account to request tokens for."""
    raise NoToken(
        "this shim has no account; set BECKON_SHIM_SERVICE_ACCOUNT and BECKON_POD_NAMESPACE "
        "from the downward API"
    )
