"""The properties of a call beside its arguments."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

Report = Callable[[float, float | None, str], Awaitable[None]]
"""Tells how far a call has come: what is done, of how much, and a word on it. Raises nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call; `repeatable` is declared by its EventType.

    `report` is `None` if progress cannot be published.
    """

    source: str
    id: str
    repeatable: bool
    report: Report | None = None

    @property
    def key(self) -> str:
        """A unique key of the call, the same at every delivery."""
        return hashlib.sha256(f"{self.source}\n{self.id}".encode()).hexdigest()[:32]


Run = Callable[[Mapping[str, object], Call], Awaitable[object]]
"""Carries out a call: its arguments in, its result out."""
