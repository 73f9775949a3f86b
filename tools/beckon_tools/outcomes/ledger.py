"""Ledgers: leases on running calls, and outcomes of ended ones."""

import importlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from beckon_tools.errors import UsageError


class Unavailable(Exception):
    """The database does not answer; the message contains no address.

    An address may hold a password.
    """


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
        """Increment the number of a key and return it.

        The number is stored for `ttl` seconds from now.
        """

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
