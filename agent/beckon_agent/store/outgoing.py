"""Sent after the fact: notifications of runs at addresses of their clients, and owed answers.

A push target is an address at which a client wants to be notified of its run. An owed answer is that of a run
that has ended, and whose caller does not have it yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

MOST_TARGETS = 10
"""How many push targets a run may have."""


@dataclass(frozen=True, slots=True)
class PushTarget:
    """An address of a run's client, with its name and credentials.

    `token` is sent in a header of its own, `scheme` and `credentials` in that of authorization.
    """

    id: str
    url: str
    token: str = field(default="", repr=False)
    scheme: str = ""
    credentials: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class DueTarget:
    """A push target whose run has to be looked at.

    `notified` is the state that the client was notified of last, empty for none, and `failures` the number of
    failed requests since then.
    """

    run_id: str
    target: PushTarget
    notified: str
    failures: int


class PushTargets(Protocol):
    """The push targets of all runs; a deleted run has none. Every method may raise `StoreUnavailable`."""

    async def put(self, run_id: str, target: PushTarget) -> bool:
        """Add or replace a target, due at once; return False if the run has `MOST_TARGETS` others."""
        ...

    async def list_of(self, run_id: str) -> Sequence[PushTarget]:
        """Return the targets of a run, in the order of their ids."""
        ...

    async def delete(self, run_id: str, target_id: str) -> None:
        """Delete a target if it exists."""
        ...

    async def claim_due(self, *, most: int, seconds: float) -> Sequence[DueTarget]:
        """Return due targets; they are due again in `seconds`, unless `note_sent` says otherwise."""
        ...

    async def note_sent(self, due: DueTarget, *, seconds: float | None) -> None:
        """Store what a target was notified of. It is due again in `seconds`, with `None` never."""
        ...


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
