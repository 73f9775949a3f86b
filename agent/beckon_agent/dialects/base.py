"""The dialect interface: a renderer of conversations, a reader of answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.core.model_types import Declaration, Message, ToolCall, call_id
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.calls import RawCall

Item = TextDelta | ToolCall
"""What a reader finds: text to show, or a call to make."""

NewId = Callable[[], str]
"""Makes the id of a call; a test passes a counter to be deterministic."""


Allows = Callable[[Sequence[RawCall], str], bool]
"""Whether calls that were read in a text may be made, given them and their markup."""


def allow_everything(calls: Sequence[RawCall], markup: str) -> bool:
    """Allow all calls, for a reader of calls never made."""
    return True


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation in the form expected by one model.

    `tools` is empty if they are in the prompt. `stop` holds the texts at which such a model begins to invent
    the other side's turn.
    """

    messages: tuple[Message, ...]
    tools: tuple[Declaration, ...] = ()
    stop: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one answer piece by piece.

    Its cut into pieces never changes the result. All of the answer comes out again as text, except for calls
    that may be made.
    """

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return the items certain by now, in order.

        Never raises.
        """

    def finish(self, *, called: bool = False) -> list[Item]:
        """End the answer; return the rest.

        `called` is True if the server gave calls of its own. Never raises.
        """


class Dialect(Protocol):
    """One form of declarations and calls for a family of models."""

    @property
    def name(self) -> str:
        """The name in the settings."""

    @property
    def native(self) -> bool:
        """True if the server takes `tools` itself."""

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> Rendered:
        """Return the conversation in the form of the model's training."""

    def make_reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = allow_everything
    ) -> Reader:
        """Return a reader for one answer of the model.

        Calls refused by `allows` stay text.
        """
