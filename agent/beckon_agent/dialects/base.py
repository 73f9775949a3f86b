"""What every dialect offers: a rendering of the conversation, and a reader of the model's text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.model.identifiers import call_id
from beckon_agent.model.types import Declaration, Message, TextDelta, ToolCall

Item = TextDelta | ToolCall
"""What a reader finds: text to show, or a call to make."""

NewId = Callable[[], str]
"""Makes the id of a call; a test passes a counter to be deterministic."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A conversation as one model expects it; `tools` is empty where they stand in the prompt.

    `stop` holds the texts at which such a model begins to invent the other side's turn.
    """

    messages: tuple[Message, ...]
    tools: tuple[Declaration, ...] = ()
    stop: tuple[str, ...] = ()


class Reader(Protocol):
    """Reads one answer piece by piece; how it is cut into pieces never changes what is found."""

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return what is certain by now, in order. Never raises."""

    def finish(self) -> list[Item]:
        """Say that the answer is over; return the rest. Never raises."""

    @property
    def unread(self) -> tuple[str, ...]:
        """The beginnings of markup that could not be read as a call; it was not shown."""


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

    def reader(self, tools: Sequence[Declaration], new_id: NewId = call_id) -> Reader:
        """Return a reader for one answer of the model."""
