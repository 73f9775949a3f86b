"""Owed answers: runs that have ended and whose answer their caller does not have yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class OwedAnswer:
    """A run whose answer is to be sent; `failures` is the number of attempts so far."""

    run_id: str
    failures: int


class OwedAnswers(Protocol):
    """The owed answers of all runs; a deleted run owes none. Every method may raise `StoreUnavailable`.

    `Runs.end_run` adds them, in the transaction that ends the run.
    """

    async def claim_due(self, *, most: int, seconds: float) -> Sequence[OwedAnswer]:
        """Return due answers; they are due again in `seconds`, unless one of the others is called."""
        ...

    async def postpone(self, run_id: str, *, seconds: float) -> None:
        """Count a failed attempt; the answer is due again in `seconds`."""
        ...

    async def settle(self, run_id: str) -> None:
        """Remove an answer: it was sent, or is given up."""
        ...
