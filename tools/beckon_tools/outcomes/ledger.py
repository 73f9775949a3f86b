"""The interface of a ledger: leases on running calls, and outcomes of ended ones."""

from typing import NamedTuple, Protocol


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

    async def keep(self, key: str, owner: str, data: bytes, ttl: float) -> None:
        """Write the outcome of a call, if it is still the owner's."""

    async def release(self, key: str, owner: str) -> None:
        """Give a call up without an outcome, if it is still the owner's."""

    async def count(self, key: str, ttl: float) -> int:
        """Increment the number of a key and return it.

        The number is stored for `ttl` seconds from now.
        """

    async def close(self) -> None:
        """Close every connection; raises nothing."""
