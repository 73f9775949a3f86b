"""What every dialect offers: a rendering of the conversation, and a reader of the model's text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.core.call_ids import call_id
from beckon_agent.core.model_types import Declaration, Message, TextDelta, ToolCall
from beckon_agent.dialects.calls import RawCall

Item = TextDelta | ToolCall
"""What a reader finds: text to show, or a call to make."""

NewId = Callable[[], str]
"""Makes the id of a call; a test passes a counter to be deterministic."""


Allows = Callable[[Sequence[RawCall], str], bool]
"""Whether calls that were read in a text may be made, given them and their markup."""


def everything(calls: Sequence[RawCall], markup: str) -> bool:
    """Allow all calls: for a reader whose calls are not made."""
    return True


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as one model expects it; `tools` is empty where they stand in the prompt.

    `stop` holds the texts at which such a model begins to invent the other side's turn.
    """

    messages: tuple[Message, ...]
    tools: tuple[Declaration, ...] = ()
    stop: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one answer piece by piece; how it is cut into pieces never changes what is found.

    All of the answer comes out again as text, but for what was read as a call that may be made.
    """

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return what is certain by now, in order. Never raises."""

    def finish(self, *, called: bool = False) -> list[Item]:
        """Say that the answer is over, and whether the server gave calls of its own; return the rest.

        Never raises.
        """


class Dialect(Protocol):
    """One way in which a family of models is told of tools and writes its calls."""

    @property
    def name(self) -> str:
        """The name that settings use."""

    @property
    def native(self) -> bool:
        """Whether the server takes `tools` itself."""

    def render(self, messages: Sequence[Message], tools: Sequence[Declaration]) -> Rendered:
        """Return the conversation in the form that the model was trained on."""

    def reader(
        self, tools: Sequence[Declaration], new_id: NewId = call_id, allows: Allows = everything
    ) -> Reader:
        """Return a reader for one answer of the model; calls that `allows` refuses stay text."""
