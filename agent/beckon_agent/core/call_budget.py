"""Depth and token budget of agents calling each other.

Both travel as extension attributes of the events between them.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from beckon_agent.core.model_types import Usage
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, EventError
from beckon_contract.cloudevents.extensions import BUDGET, DEPTH, USED

_INTEGER = re.compile(r"-?\d{1,10}", re.ASCII)
_MOST = 2**31 - 1  # what an Integer of CloudEvents holds


@dataclass(frozen=True, slots=True)
class CallBudget:
    """Depth and token budget of a run in a chain of agents.

    `depth` 0 is a run begun by a person; `budget` is `None` without a limit.
    """

    depth: int = 0
    budget: int | None = None

    @classmethod
    def from_event(cls, event: CloudEvent) -> "CallBudget":
        """Return the depth and budget of a run started by this event.

        Raises `EventError` for an attribute that is no integer.
        """
        return cls(max(0, _read_integer(event, DEPTH) or 0), _read_integer(event, BUDGET))

    def token_limit(self, limit: int | None) -> int | None:
        """Return the token limit of a run with its own `limit`.

        That is the lower one of `limit` and `budget`, and `None` without either.
        """
        limits = [tokens for tokens in (limit, self.budget) if tokens is not None]
        return min(limits, default=None)

    def to_attributes(
        self, limit: int | None, usage: Usage | None, elsewhere: int = 0, *, shares: int = 1
    ) -> dict[str, AttributeValue]:
        """Return the attributes of an event sent by a run.

        `usage` is its own use of tokens so far. The run's limit is for the run and for all that it calls:
        `elsewhere` are the tokens of those, and the rest is shared evenly by the `shares` calls that have no
        answer yet (decision 0026).
        """
        attributes: dict[str, AttributeValue] = {DEPTH: self.depth + 1}
        tokens = self.token_limit(limit)
        if tokens is not None:
            left = max(0, tokens - _total_tokens(usage) - elsewhere)
            attributes[BUDGET] = min(_MOST, left // shares)
        return attributes


ROOT = CallBudget()

_sending: ContextVar[Mapping[str, AttributeValue]] = ContextVar("sending")


@contextmanager
def propagate_attributes(attributes: Mapping[str, AttributeValue]) -> Iterator[None]:
    """Set the attributes of events sent by this task.

    `onward` makes them.
    """
    token = _sending.set(attributes)
    try:
        yield
    finally:
        _sending.reset(token)


def current_attributes() -> Mapping[str, AttributeValue]:
    """Return the attributes of an event sent now.

    Outside of any run the event begins a chain.
    """
    return _sending.get(ROOT.to_attributes(None, None))


def usage_attribute(usage: Usage | None, elsewhere: int = 0) -> dict[str, AttributeValue]:
    """Return the attribute for an answer's total token cost.

    The mapping is empty if no tokens were counted.
    """
    uncounted = usage is None and not elsewhere
    return {} if uncounted else {USED: min(_MOST, _total_tokens(usage) + elsewhere)}


def reported_cost(reply: CloudEvent) -> int:
    """Return the token cost reported by a reply.

    It is 0 without the attribute, or if the attribute is no integer.
    """
    try:
        return max(0, _read_integer(reply, USED) or 0)
    except EventError:
        return 0


def _total_tokens(usage: Usage | None) -> int:
    return 0 if usage is None else usage.total_tokens


def _read_integer(event: CloudEvent, name: str) -> int | None:
    """Read an integer attribute, as text or as a number.

    Text comes from a header. Return `None` if it is absent; raises `EventError` for anything else than an
    integer.
    """
    value = event.extensions.get(name)
    if value is None:
        return None
    text = str(value)
    if isinstance(value, bool) or not _INTEGER.fullmatch(text):
        raise EventError(f"the attribute {name!r} is no integer: {text[:20]!r}")
    return int(text)
