"""From the payloads of one answer to its text, reasoning, calls and end.

A payload is a chunk of a stream or a whole completion: `delta` and `message` are
read alike. Where both are there, the deltas count, and the last message for what no
delta brought. Every member may be missing, null, or of another type than it should.
"""

from collections.abc import Collection, Iterator, Mapping

from beckon_agent.model import wire
from beckon_agent.model.deltas import CallAccumulator
from beckon_agent.model.thinking import ThinkSplitter
from beckon_agent.model.types import BROKE_OFF, ReasoningDelta, TextDelta, Turn, Usage


class AnswerReader:
    """Reads one answer; `finish` closes it and returns the `Turn`."""

    def __init__(self) -> None:
        self.spoke = False
        """Whether anything of an answer came, be it empty."""
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._splitter = ThinkSplitter()
        self._calls = CallAccumulator()
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._whole = False
        self._thoughts, self._words = wire.Joiner(), wire.Joiner()
        self._brought: set[str] = set()
        self._beside: Mapping[str, object] = {}

    def feed(self, payload: Mapping[str, object]) -> Iterator[TextDelta | ReasoningDelta]:
        """Take one payload; yield the pieces to show."""
        self._usage = _usage(payload) or self._usage
        choices = payload.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            # Azure's asynchronous filter results are choices without a delta (autogen#6465).
            if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
                self.spoke = True
                yield from self._choice(choice)

    def finish(self) -> Iterator[TextDelta | ReasoningDelta]:
        """Yield what was still held back."""
        beside, self._beside = self._beside, {}
        yield from self._message(beside, besides=frozenset(self._brought))
        yield from self._thought(self._thoughts.close())
        yield from self._kept(self._splitter.feed(self._words.close()))
        yield from self._kept(self._splitter.close())

    def end(self) -> None:
        """Take the word of the server, other than by a finish reason, that the answer is whole."""
        self._whole = True

    @property
    def finished(self) -> bool:
        """Whether the server said how the answer ends; what breaks after that spoils nothing."""
        return self._finish_reason is not None

    @property
    def broke_off(self) -> bool:
        """Whether the answer ended although the server did not say that it is whole."""
        return self.spoke and not (self._whole or self.finished)

    @property
    def without_arguments(self) -> frozenset[str]:
        """The names of calls for which the server sent no arguments at all."""
        return self._calls.without_arguments

    def turn(self, taken: Collection[str]) -> Turn:
        """Return the whole answer; its calls' ids are none of those taken."""
        return Turn(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=self._calls.finish(taken, cut_off=self.broke_off or self._finish_reason == "length"),
            finish_reason=BROKE_OFF if self.broke_off else self._finish_reason,
            usage=self._usage,
        )

    def _choice(self, choice: Mapping[str, object]) -> Iterator[TextDelta | ReasoningDelta]:
        delta, message = choice.get("delta"), wire.mapping(choice.get("message"))
        if delta is not None and message:
            # Perplexity repeats the whole text so far in `message` beside every delta, also an empty one.
            self._beside = message
        yield from self._message(message if delta is None else wire.mapping(delta))
        self._finish_reason = self._finish_reason or wire.text(choice.get("finish_reason")) or None

    def _message(
        self, message: Mapping[str, object], *, besides: Collection[str] = ()
    ) -> Iterator[TextDelta | ReasoningDelta]:
        """Read a delta or a message, without those of its parts that are there already."""
        thought = wire.first_piece(message, "reasoning_content", "reasoning")
        content = message.get("content")
        if isinstance(content, list):
            thought += _parts(content, thinking=True)
            content = _parts(content, thinking=False)
        # A refusal is what the model says instead of an answer, so it is shown as one.
        spoken = wire.piece(content) or wire.piece(message.get("refusal"))
        calls = message.get("tool_calls")
        if thought and "thought" not in besides:
            self._brought.add("thought")
            yield from self._thought(self._thoughts.feed(thought))
        if spoken and "words" not in besides:
            self._brought.add("words")
            yield from self._kept(self._splitter.feed(self._words.feed(spoken)))
        if calls and "calls" not in besides:
            self._brought.add("calls")
            self._calls.feed(calls)

    def _thought(self, piece: str) -> Iterator[TextDelta | ReasoningDelta]:
        if piece:
            yield from self._kept([ReasoningDelta(piece)])

    def _kept(self, pieces: list[TextDelta | ReasoningDelta]) -> Iterator[TextDelta | ReasoningDelta]:
        for piece in pieces:
            (self._text if isinstance(piece, TextDelta) else self._reasoning).append(piece.text)
            yield piece


def _parts(content: list[object], *, thinking: bool) -> str:
    """Join the texts of content parts: either the thinking ones or the others (Magistral)."""
    texts = []
    for part in content:
        member = wire.mapping(part)
        inner = member.get("thinking")
        if isinstance(part, str) and not thinking:
            texts.append(part)
        elif (inner is not None) is thinking:
            texts.append(_thinking(inner) if thinking else wire.piece(member.get("text")))
    return "".join(texts)


def _thinking(inner: object) -> str:
    if isinstance(inner, list):
        return "".join(wire.piece(wire.mapping(part).get("text")) for part in inner)
    return wire.piece(inner)


def _usage(payload: Mapping[str, object]) -> Usage | None:
    usage = wire.mapping(payload.get("usage")) or wire.mapping(
        wire.mapping(payload.get("x_groq")).get("usage")
    )
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if isinstance(prompt, int) and isinstance(completion, int):
        return Usage(prompt, completion)
    return None
