"""Push targets: the addresses that clients want to be notified at of their runs."""

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
