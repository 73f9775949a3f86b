"""Counters: the use of limits, shared by all replicas."""

from typing import Protocol

from beckon_agent.core.records import LimitDecision, ReservedLimit


class Counters(Protocol):
    """The use of limits, exact over all replicas."""

    async def take_amount(self, key: str, amount: int, *, limit: int, window: float) -> LimitDecision:
        """Use an amount of a limit per sliding window, all or nothing. `window` is in seconds."""
        ...

    async def reserve_amount(self, key: str, token: str, amount: int, limit: ReservedLimit) -> LimitDecision:
        """Reserve an amount of a limit before its use.

        It is allowed if anything is left, even less than the amount. A token that has a reservation keeps it,
        with this amount.
        """
        ...

    async def settle_reservation(self, key: str, token: str, amount: int, *, window: float) -> None:
        """Replace a reservation by the actual use, however large."""
        ...

    async def take_place(self, key: str, token: str, *, limit: int, seconds: float) -> LimitDecision:
        """Take one of `limit` places for at most `seconds`.

        A token that has a place already keeps it, for `seconds` from now.
        """
        ...

    async def give_place_back(self, key: str, token: str) -> None:
        """Give the place back."""
        ...
