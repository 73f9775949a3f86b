"""What a database has to do for it: leases on calls that run, and the outcomes of those that have ended."""

from typing import NamedTuple, Protocol


class Unavailable(Exception):
    """The database does not answer; the message names no address, which may hold a password."""


class Claim(NamedTuple):
    """What became of a claim: the call is `mine`, or its outcome is known; neither: another one runs it."""

    mine: bool
    data: bytes | None = None


class Ledger(Protocol):
    """Calls by key, each held by one owner until its lease ends, then with an outcome. Times in seconds.

    Every method raises `Unavailable`.
    """

    async def claim(self, key: str, owner: str, lease: float) -> Claim:
        """Take a call that nobody holds and that has no outcome."""

    async def renew(self, key: str, owner: str, lease: float) -> bool:
        """Hold a call for longer; `False` where it is no longer the owner's."""

    async def keep(self, key: str, owner: str, data: bytes, ttl: float) -> None:
        """Write the outcome of a call, if it is still the owner's."""

    async def release(self, key: str, owner: str) -> None:
        """Give a call up without an outcome, if it is still the owner's."""

    async def count(self, key: str, ttl: float) -> int:
        """Add one to the number of a key, which is kept for so long from now; return it."""

    async def close(self) -> None:
        """Close every connection; raises nothing."""
