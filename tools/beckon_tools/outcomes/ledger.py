"""Ledgers: leases on running calls, and outcomes of ended ones, shared by the replicas of a tool.

A call runs at one replica at a time.
"""

import asyncio
import contextlib
import hashlib
import importlib
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import orjson

from beckon_tools.errors import UsageError


class Unavailable(Exception):
    """The database does not answer; the message contains no address. An address may hold a password."""


class Claim(NamedTuple):
    """The result of a claim on a call.

    The call is `mine`, or `data` is its known outcome. With neither, another owner runs it.
    """

    mine: bool
    data: bytes | None = None


class Ledger(Protocol):
    """Calls by key, each with one owner, later with an outcome.

    The owner has the call until its lease ends. Times are in seconds. Every method but `close` raises
    `Unavailable`.
    """

    async def claim(self, key: str, owner: str, lease: float) -> Claim:
        """Claim a call, unless it has an owner or an outcome."""

    async def renew(self, key: str, owner: str, lease: float) -> bool:
        """Extend the lease of a call; `False` if the owner has lost it."""

    async def store_outcome(self, key: str, owner: str, data: bytes, ttl: float) -> None:
        """Write the outcome of a call, if it is still the owner's."""

    async def release(self, key: str, owner: str) -> None:
        """Give a call up without an outcome, if it is still the owner's."""

    async def count(self, key: str, ttl: float) -> int:
        """Increment the number of a key and return it. The number is stored for `ttl` seconds from now."""

    async def close(self) -> None:
        """Close every connection; raises nothing."""


# By the scheme: the extra of this package, the module of the ledger and its class.
_KINDS: Mapping[str, tuple[str, str]] = {
    "redis": ("redis", "RedisLedger"),
    "rediss": ("redis", "RedisLedger"),
    "unix": ("redis", "RedisLedger"),
    "postgresql": ("postgresql", "PostgresqlLedger"),
    "postgres": ("postgresql", "PostgresqlLedger"),
}


def open_ledger(url: str) -> Ledger:
    """Return the ledger at an address, not yet connected.

    Raises `UsageError` if the address is invalid or the driver is not installed.
    """
    kind = _KINDS.get(url.partition(":")[0])
    if kind is None:
        raise UsageError(
            "BECKON_TOOLS_REMEMBER_URL: write redis://host:6379/0 or postgresql://user@host/database"
        )
    extra, name = kind
    try:
        urlsplit(url)
        module = importlib.import_module(f"beckon_tools.outcomes.{extra}")
        ledger: Any = getattr(module, name)(url)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"BECKON_TOOLS_REMEMBER_URL: {error.name} is not installed; install beckon-tools[{extra}]"
        ) from None
    except ValueError:  # its text may hold the password
        raise UsageError("BECKON_TOOLS_REMEMBER_URL is no address that can be read") from None
    opened: Ledger = ledger
    return opened


logger = logging.getLogger(__name__)

_FIRST_PAUSE = 0.05
_LONGEST_PAUSE = 1.0

Run = Callable[[], Awaitable[bytes]]


class CallKey(NamedTuple):
    """The key of a call: its tool, and source and id of its event.

    One event may be a call of several tools.
    """

    tool: str
    source: str
    id: str


class LeaseLost(Exception):
    """Another replica has the call: the lease was not renewed in time."""


class SharedOutcomes:
    """Outcomes in a ledger, stored for `ttl` seconds.

    The lease of a process that died ends after `lease` seconds.
    """

    def __init__(self, ledger: Ledger, *, lease: float, ttl: float) -> None:
        self._ledger = ledger
        self._lease = lease
        self._ttl = ttl

    async def find_outcome(self, call: CallKey, run: Run) -> bytes:
        """Return the outcome of a call, running it if no replica does.

        Waits while another replica runs it. Raises the exceptions of `run`, and `Unavailable` if the
        ledger cannot say whether the call runs: it is not run then.
        """
        key = _key_of("call", call)
        pause = _FIRST_PAUSE
        while True:
            owner = uuid.uuid4().hex
            claim = await self._ledger.claim(key, owner, self._lease)
            if claim.data is not None:
                return claim.data
            if claim.mine:
                with contextlib.suppress(LeaseLost):
                    return await self._run_leased(key, owner, run)
                logger.warning("event %s was taken over by another replica while it ran here", call.id)
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)

    async def count_delivery(self, call: CallKey) -> int:
        """Count a delivery of a call; return the number at all replicas. Raises `Unavailable`."""
        return await self._ledger.count(_key_of("deliveries", call), self._ttl)

    async def close(self) -> None:
        """Close the ledger."""
        await self._ledger.close()

    async def _run_leased(self, key: str, owner: str, run: Run) -> bytes:
        """Run a call, renewing its lease meanwhile.

        The lease of a failed run is released, so that a retry runs again.
        """
        try:
            data = await self._run_call(key, owner, run)
        except BaseException:
            with contextlib.suppress(Unavailable):  # the lease ends by itself
                await self._ledger.release(key, owner)
            raise
        try:
            await self._ledger.store_outcome(key, owner, data, self._ttl)
        except Unavailable as error:
            # It has happened, so the caller gets the outcome.
            logger.warning("an outcome is not shared, a repetition elsewhere would run again: %s", error)
        return data

    async def _run_call(self, key: str, owner: str, run: Run) -> bytes:
        running = asyncio.ensure_future(run())
        holding = asyncio.create_task(self._renew_lease(key, owner))
        try:
            await asyncio.wait((running, holding), return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                return running.result()
            raise LeaseLost
        finally:
            for task in (running, holding):
                task.cancel()
            await asyncio.gather(running, holding, return_exceptions=True)

    async def _renew_lease(self, key: str, owner: str) -> None:
        """Renew the lease for as long as it is ours."""
        is_leased = True
        while is_leased:
            await asyncio.sleep(self._lease / 3)
            try:
                is_leased = await self._ledger.renew(key, owner, self._lease)
            except Unavailable as error:
                logger.warning("the lease of a call is not renewed: %s", error)


def _key_of(what: str, call: CallKey) -> str:
    return f"beckon:{what}:{hashlib.sha256(orjson.dumps([*call])).hexdigest()}"
