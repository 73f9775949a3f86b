"""The one thing that a run knows about the origin of its tools."""

from typing import Protocol

from beckon_agent.catalogue.explained import Explanation
from beckon_contract.catalogue import Catalogue


class CatalogueSource(Protocol):
    """Something that keeps a catalogue up to date."""

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now; never blocks, never raises, and is never changed afterwards."""
        ...

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return what is known of an EventType, `None` for one that there is not; never blocks or raises."""
        ...
