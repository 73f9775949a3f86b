"""Depth and token budget of agents that call each other.

Both travel as extension attributes of the events between them.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from beckon_agent.core.model_types import Usage
from beckon_contract.chains import BUDGET, DEPTH, USED
from beckon_contract.events import AttributeValue, CloudEvent, EventError

_INTEGER = re.compile(r"-?\d{1,10}", re.ASCII)
_MOST = 2**31 - 1  # what an Integer of CloudEvents holds


@dataclass(frozen=True, slots=True)
class CallBudget:
    """Where a run stands: 0 is a run that a person began; `budget` is `None` where there is no limit."""

    depth: int = 0
    budget: int | None = None

    @classmethod
    def of(cls, event: CloudEvent) -> "CallBudget":
        """Return where a run stands that this event starts; raise `EventError` for what is no number."""
        return cls(max(0, _integer(event, DEPTH) or 0), _integer(event, BUDGET))

    def tokens(self, limit: int | None) -> int | None:
        """Return how many tokens a run may use that has this limit of its own; `None` where there is none."""
        limits = [tokens for tokens in (limit, self.budget) if tokens is not None]
        return min(limits, default=None)

    def onward(
        self, limit: int | None, usage: Usage | None, elsewhere: int = 0, *, shares: int = 1
    ) -> dict[str, AttributeValue]:
        """Return the attributes of an event that a run sends after it has used so much.

        The run's limit is for the run and for all that it calls: `elsewhere` are the tokens of those, and
        what is left is shared evenly by so many calls that have no answer yet (decision 0026).
        """
        attributes: dict[str, AttributeValue] = {DEPTH: self.depth + 1}
        tokens = self.tokens(limit)
        if tokens is not None:
            left = max(0, tokens - _total(usage) - elsewhere)
            attributes[BUDGET] = min(_MOST, left // shares)
        return attributes


ROOT = CallBudget()

_sending: ContextVar[Mapping[str, AttributeValue]] = ContextVar("sending")


@contextmanager
def propagate(attributes: Mapping[str, AttributeValue]) -> Iterator[None]:
    """Let the events that this task sends carry these attributes, those of `onward`."""
    token = _sending.set(attributes)
    try:
        yield
    finally:
        _sending.reset(token)


def current_attributes() -> Mapping[str, AttributeValue]:
    """Return the attributes that an event carries which is sent now; outside of any run it begins a chain."""
    return _sending.get(ROOT.onward(None, None))


def usage_attribute(usage: Usage | None, elsewhere: int = 0) -> dict[str, AttributeValue]:
    """Return the attribute by which an answer tells what it cost in all, none where nobody counted."""
    uncounted = usage is None and not elsewhere
    return {} if uncounted else {USED: min(_MOST, _total(usage) + elsewhere)}


def reported_cost(reply: CloudEvent) -> int:
    """Return the tokens that a reply says it cost; none where it says nothing that is a number."""
    try:
        return max(0, _integer(reply, USED) or 0)
    except EventError:
        return 0


def _total(usage: Usage | None) -> int:
    return 0 if usage is None else usage.total_tokens


def _integer(event: CloudEvent, name: str) -> int | None:
    """Read a number that came as text in a header, or as itself in JSON."""
    value = event.extensions.get(name)
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not _INTEGER.fullmatch(text):
        raise EventError(f"the attribute {name!r} is no integer: {text[:20]!r}")
    return int(text)
