"""The text of items: its content parts, and those that still grow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from beckon_agent.core.model_types import Logprobs
from beckon_agent.core.run_events import AnnotationAdded, ReasoningDelta, RefusalDelta, RunEvent, TextDelta

TextKind = Literal["message", "refusal", "reasoning"]
"""The text of an item: a message's, a message's that is a refusal, or the model's reasoning."""


class TopLogprob(TypedDict):
    """A token with its log probability."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TopLogprob):
    """A token of the text with its log probability, and those of other tokens at its place."""

    top_logprobs: list[TopLogprob]


class UrlCitation(TypedDict):
    """A source of the text, by its address."""

    type: Literal["url_citation"]
    url: str
    title: str
    start_index: int
    end_index: int


class OutputText(TypedDict):
    """The content part of a message."""

    type: Literal["output_text"]
    text: str
    annotations: list[UrlCitation]
    logprobs: list[TokenLogprob]


class RefusalContent(TypedDict):
    """The content part of a message with which the model refuses."""

    type: Literal["refusal"]
    refusal: str


class ReasoningText(TypedDict):
    """The content part of a reasoning item."""

    type: Literal["reasoning_text"]
    text: str


ContentPart = OutputText | RefusalContent | ReasoningText


def write_part(
    kind: TextKind,
    text: str,
    annotations: Sequence[Mapping[str, Any]] = (),
    logprobs: Sequence[TokenLogprob] = (),
) -> ContentPart:
    """Return the content part of a message or reasoning item."""
    if kind == "refusal":
        return {"type": "refusal", "refusal": text}
    if kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {
        "type": "output_text",
        "text": text,
        "annotations": cast("list[UrlCitation]", list(annotations)),
        "logprobs": list(logprobs),
    }


def _write_logprobs(logprobs: Logprobs) -> list[TokenLogprob]:
    """Return log probabilities in the form of this API, which requires the bytes of each token."""
    return [
        {**_to_token(token), "top_logprobs": list(map(_to_token, token["top_logprobs"]))}
        for token in logprobs
    ]


def _to_token(token: Mapping[str, Any]) -> TopLogprob:
    content = token["bytes"]
    if content is None:
        content = list(token["token"].encode())
    return {"token": token["token"], "logprob": token["logprob"], "bytes": content}


_KINDS: dict[type[RunEvent], TextKind] = {
    TextDelta: "message",
    RefusalDelta: "refusal",
    ReasoningDelta: "reasoning",
}
_EVENTS: dict[TextKind, str] = {
    "message": "response.output_text",
    "refusal": "response.refusal",
    "reasoning": "response.reasoning_text",
}


def kind_of(event: TextDelta | ReasoningDelta) -> TextKind:
    """Return the kind of a piece of text."""
    return _KINDS[type(event)]


def place_citation(added: AnnotationAdded, lengths: Sequence[int]) -> tuple[int, UrlCitation]:
    """Return the number of the message with a citation, and the citation with its places in that message.

    `lengths` are those of the messages which have the text of the answer.
    """
    cited = cast("UrlCitation", added.place_in(sum(lengths)))
    before = 0
    for number, length in enumerate(lengths):
        if cited["start_index"] < before + length or number == len(lengths) - 1:
            break
        before += length
    start, end = cited["start_index"] - before, cited["end_index"] - before
    return number, {**cited, "start_index": start, "end_index": end}


@dataclass(slots=True)
class OpenText:
    """A message or reasoning item still in progress.

    Its methods return the type of an event of the API, and the members of that event.
    """

    kind: TextKind
    id: str
    index: int
    _pieces: list[str] = field(default_factory=list)
    _annotations: list[UrlCitation] = field(default_factory=list)
    _logprobs: list[TokenLogprob] = field(default_factory=list)

    def grow(self, delta: str, logprobs: Logprobs) -> tuple[str, dict[str, object]]:
        """Add a piece."""
        self._pieces.append(delta)
        members: dict[str, object] = {"delta": delta}
        if self.kind == "message":
            members["logprobs"] = tokens = _write_logprobs(logprobs) if logprobs else []
            self._logprobs += tokens
        return f"{_EVENTS[self.kind]}.delta", members

    @property
    def length(self) -> int:
        """The number of its characters."""
        return sum(map(len, self._pieces))

    def annotate(self, cited: UrlCitation) -> tuple[str, dict[str, object]]:
        """Add a citation to a message."""
        self._annotations.append(cited)
        members = {"annotation_index": len(self._annotations) - 1, "annotation": cited}
        return "response.output_text.annotation.added", members

    def close(self) -> tuple[str, dict[str, object]]:
        """End the text."""
        members: dict[str, object] = {"refusal" if self.kind == "refusal" else "text": self._text}
        if self.kind == "message":
            members["logprobs"] = self._logprobs
        return f"{_EVENTS[self.kind]}.done", members

    def to_part(self) -> ContentPart:
        """Return the content part of the whole text."""
        return write_part(self.kind, self._text, self._annotations, self._logprobs)

    @property
    def _text(self) -> str:
        return "".join(self._pieces)
