"""From the payloads of one answer to its text, reasoning, calls and end.

A payload is a chunk of a stream or a whole completion: `delta` and `message` are
read alike. Every member may be missing, null, or of another type than it should.
"""

from collections.abc import Collection, Iterator, Mapping

from beckon_agent.model import wire
from beckon_agent.model.deltas import CallAccumulator
from beckon_agent.model.thinking import ThinkSplitter
from beckon_agent.model.types import ReasoningDelta, TextDelta, Turn, Usage


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
        yield from self._kept(self._splitter.close())

    @property
    def finished(self) -> bool:
        """Whether the server said that the answer is whole; what breaks after that spoils nothing."""
        return self._finish_reason is not None

    @property
    def without_arguments(self) -> frozenset[str]:
        """The names of calls for which the server sent no arguments at all."""
        return self._calls.without_arguments

    def turn(self, taken: Collection[str]) -> Turn:
        """Return the whole answer; its calls' ids are none of those taken."""
        return Turn(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=self._calls.finish(taken),
            finish_reason=self._finish_reason,
            usage=self._usage,
        )

    def _choice(self, choice: Mapping[str, object]) -> Iterator[TextDelta | ReasoningDelta]:
        # Perplexity repeats the whole text so far in `message` beside every delta.
        delta = choice.get("delta")
        message = wire.mapping(choice.get("message") if delta is None else delta)
        thought = wire.first_text(message, "reasoning_content", "reasoning")
        content = message.get("content")
        if isinstance(content, list):
            thought += _parts(content, thinking=True)
            content = _parts(content, thinking=False)
        if thought:
            yield from self._kept([ReasoningDelta(thought)])
        # A refusal is what the model says instead of an answer, so it is shown as one.
        spoken = wire.text(content) or wire.text(message.get("refusal"))
        yield from self._kept(self._splitter.feed(spoken))
        self._calls.feed(message.get("tool_calls"))
        self._finish_reason = self._finish_reason or wire.text(choice.get("finish_reason")) or None

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
            texts.append(wire.text(part))
        elif (inner is not None) is thinking:
            texts.append(_thinking(inner) if thinking else wire.text(member.get("text")))
    return "".join(texts)


def _thinking(inner: object) -> str:
    if isinstance(inner, list):
        return "".join(wire.text(wire.mapping(part).get("text")) for part in inner)
    return wire.text(inner)


def _usage(payload: Mapping[str, object]) -> Usage | None:
    usage = wire.mapping(payload.get("usage")) or wire.mapping(
        wire.mapping(payload.get("x_groq")).get("usage")
    )
    prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if isinstance(prompt, int) and isinstance(completion, int):
        return Usage(prompt, completion)
    return None
