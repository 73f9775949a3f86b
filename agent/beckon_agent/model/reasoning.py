"""The reasoning that models write into their answers, between tags."""

from enum import Enum, auto

from beckon_agent.core.run_events import ReasoningDelta, TextDelta

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "[THINK]": "[/THINK]",
}


class _ThinkState(Enum):
    BEGINNING = auto()
    THINKING = auto()
    ANSWERING = auto()


class ThinkSplitter:
    """Splits streamed content into reasoning and answer, wherever the pieces break.

    Blanks before the first word are held back, and dropped where no word follows:
    models write them before their tool calls.
    """

    def __init__(self) -> None:
        self._state = _ThinkState.BEGINNING
        self._held = ""
        self._closing = ""
        self._thought = False

    def feed(self, piece: str) -> list[TextDelta | ReasoningDelta]:
        """Take a piece of content; return the pieces certain by now."""
        if self._state is _ThinkState.ANSWERING:
            return [TextDelta(piece)] if piece else []
        self._held += piece
        deltas: list[TextDelta | ReasoningDelta] = []
        while self._take_step(deltas):
            pass
        return deltas

    def close(self) -> list[TextDelta | ReasoningDelta]:
        """Return the text held back; an unclosed block is reasoning to its end."""
        text, self._held = self._held, ""
        if self._state is _ThinkState.THINKING:
            return [ReasoningDelta(text)] if text else []
        return [TextDelta(text)] if text.strip() else []

    def _take_step(self, deltas: list[TextDelta | ReasoningDelta]) -> bool:
        """Go on by one decision; return True if another may follow."""
        if self._state is _ThinkState.BEGINNING:
            return self._find_opening(deltas)
        if self._state is _ThinkState.THINKING:
            return self._read_reasoning(deltas)
        return False

    def _find_opening(self, deltas: list[TextDelta | ReasoningDelta]) -> bool:
        word = self._held.lstrip()
        if not word:
            return False
        for opening, closing in _TAGS.items():
            if word.startswith(opening):
                self._state, self._closing = _ThinkState.THINKING, closing
                self._held = word.removeprefix(opening)
                return True
        if any(opening.startswith(word) for opening in _TAGS):
            return False
        deltas.append(TextDelta(word if self._thought else self._held))
        self._state, self._held = _ThinkState.ANSWERING, ""
        return False

    def _read_reasoning(self, deltas: list[TextDelta | ReasoningDelta]) -> bool:
        thought, closed, rest = self._held.partition(self._closing)
        if closed:
            self._state, self._thought, self._held = _ThinkState.BEGINNING, True, rest
        else:
            length = _possible_start(thought, self._closing)
            self._held = thought[len(thought) - length :]
            thought = thought[: len(thought) - length]
        if thought:
            deltas.append(ReasoningDelta(thought))
        return bool(closed)


def _possible_start(text: str, tag: str) -> int:
    """Return how many characters at the end of a text may be the start of a tag."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0
