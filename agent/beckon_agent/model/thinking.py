"""Telling the reasoning that some models write into their text from the answer.

Qwen3, DeepSeek R1 and Magistral begin their content with `<think>…</think>` or
`[THINK]…[/THINK]`. Only at the beginning, or right after another such block, is a
tag taken for one: an answer may well speak of tags.
"""

from enum import Enum, auto

from beckon_agent.model.types import ReasoningDelta, TextDelta

_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "[THINK]": "[/THINK]",
}


class _State(Enum):
    BEGINNING = auto()
    THINKING = auto()
    ANSWERING = auto()


class ThinkSplitter:
    """Splits streamed content into reasoning and answer, wherever the pieces break.

    Blanks before the first word are held back, and dropped where no word follows:
    models write them before their tool calls.
    """

    def __init__(self) -> None:
        self._state = _State.BEGINNING
        self._held = ""
        self._closing = ""
        self._thought = False

    def feed(self, piece: str) -> list[TextDelta | ReasoningDelta]:
        """Take a piece of content; return what is certain by now."""
        if self._state is _State.ANSWERING:
            return [TextDelta(piece)] if piece else []
        self._held += piece
        found: list[TextDelta | ReasoningDelta] = []
        while self._step(found):
            pass
        return found

    def close(self) -> list[TextDelta | ReasoningDelta]:
        """Return what was held back; an unclosed block is reasoning to its end."""
        held, self._held = self._held, ""
        if self._state is _State.THINKING:
            return [ReasoningDelta(held)] if held else []
        return [TextDelta(held)] if held.strip() else []

    def _step(self, found: list[TextDelta | ReasoningDelta]) -> bool:
        """Go on by one decision; return whether another may follow."""
        if self._state is _State.BEGINNING:
            return self._begin(found)
        if self._state is _State.THINKING:
            return self._think(found)
        return False

    def _begin(self, found: list[TextDelta | ReasoningDelta]) -> bool:
        word = self._held.lstrip()
        if not word:
            return False
        for opening, closing in _TAGS.items():
            if word.startswith(opening):
                self._state, self._closing = _State.THINKING, closing
                self._held = word.removeprefix(opening)
                return True
        if any(opening.startswith(word) for opening in _TAGS):
            return False
        found.append(TextDelta(word if self._thought else self._held))
        self._state, self._held = _State.ANSWERING, ""
        return False

    def _think(self, found: list[TextDelta | ReasoningDelta]) -> bool:
        thought, closed, rest = self._held.partition(self._closing)
        if closed:
            self._state, self._thought, self._held = _State.BEGINNING, True, rest
        else:
            kept = _possible_start(thought, self._closing)
            self._held = thought[len(thought) - kept :]
            thought = thought[: len(thought) - kept]
        if thought:
            found.append(ReasoningDelta(thought))
        return bool(closed)


def _possible_start(text: str, tag: str) -> int:
    """Return how many characters at the end of a text may be the start of a tag."""
    for length in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:length]):
            return length
    return 0
