"""The answer of a model server, assembled from its stream.

OpenAI sends an index with every fragment of a tool call, and the id and the name once. Others
send no index, the same index for every call, a new id with every fragment, no id,
a name twice, or arguments as an object. So a fragment is judged by what the call
before it still lacks, and never by its id alone.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from beckon_agent.core import json_values
from beckon_agent.core.model_types import (
    BROKE_OFF,
    AnswerDetails,
    Logprobs,
    ToolCall,
    Turn,
    Usage,
    call_id,
    may_stay,
)
from beckon_agent.core.run_events import ReasoningDelta, RefusalDelta, TextDelta
from beckon_agent.model.answer_details import read_citations, read_logprobs, read_usage
from beckon_agent.model.reasoning import ThinkSplitter

_Piece = TextDelta | ReasoningDelta

_KNOWN = frozenset({"index", "id", "type", "function"})
_INDEX = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class _Fragment:
    """One entry of `delta.tool_calls`, read null-safely. Missing texts are empty."""

    index: int | None
    id: str
    name: str
    arguments: str
    extra: Mapping[str, object]


@dataclass(slots=True)
class _OpenCall:
    """A growing call; a character of its arguments may be half there."""

    wire_id: str
    name: str = ""
    arguments: str = ""
    extra: dict[str, object] = field(default_factory=dict)

    def add_fragment(self, fragment: _Fragment) -> None:
        """Append a fragment; the first id and the first name stay."""
        self.wire_id = self.wire_id or fragment.id
        self.name = self.name or fragment.name
        self.arguments += fragment.arguments
        self.extra = _merge_objects(self.extra, fragment.extra)


class CallAccumulator:
    """The tool calls of one answer, from their fragments in order of arrival."""

    def __init__(self) -> None:
        self._calls: list[_OpenCall] = []
        self._by_index: dict[int, _OpenCall] = {}

    def feed(self, deltas: object) -> None:
        """Take the value of `delta.tool_calls` or `message.tool_calls`, of any type."""
        entries = deltas if isinstance(deltas, list) else [deltas]
        for entry in entries:
            if isinstance(entry, dict):
                self._add_fragment(_to_fragment(entry))

    @property
    def without_arguments(self) -> frozenset[str]:
        """The names of calls without any arguments."""
        return frozenset(call.name for call in self._calls if call.name and not call.arguments.strip())

    def finish(self, taken: Collection[str] = (), *, cut_off: bool = False) -> tuple[ToolCall, ...]:
        """Return the calls, with ids unique among themselves and `taken`.

        No arguments at all mean `{}`, but for the last call of an answer that was `cut_off`: its arguments
        may have been on their way.
        """
        finished: list[ToolCall] = []
        used = set(taken)
        for call in self._calls:
            if not call.name and not call.arguments:
                continue  # lmstudio-bug-tracker#830: an entry without a function
            stays = may_stay(call.wire_id) and call.wire_id not in used
            settled = call.wire_id if stays else call_id(used)
            used.add(settled)
            arguments = json_values.well_formed(call.arguments)
            if not arguments.strip() and not (cut_off and call is self._calls[-1]):
                arguments = "{}"
            finished.append(ToolCall(settled, call.name, arguments, call.extra))
        return tuple(finished)

    def _add_fragment(self, fragment: _Fragment) -> None:
        current = self._find_open_call(fragment)
        if current is None or _is_another(current, fragment):
            current = _OpenCall(wire_id=fragment.id)
            self._calls.append(current)
        if fragment.index is not None:
            self._by_index[fragment.index] = current
        current.add_fragment(fragment)

    def _find_open_call(self, fragment: _Fragment) -> _OpenCall | None:
        """Return the call to continue with a fragment, `None` for a new one."""
        last = self._calls[-1] if self._calls else None
        if fragment.index is None:
            return last
        known = self._by_index.get(fragment.index)
        if known is None and not fragment.name and not fragment.id:
            return last
        return known


def _is_another(current: _OpenCall, fragment: _Fragment) -> bool:
    """True if a fragment opens a new call despite its known index.

    It does if it has a name, and the call before it may be whole: its arguments are empty or complete. The
    same id is a repetition (vllm#44098); so is the same name without an id while one of the two has no
    arguments.
    """
    if not fragment.name or not current.name:
        return False
    if current.arguments and not json_values.is_complete(current.arguments):
        return False
    if fragment.id:
        return fragment.id != current.wire_id
    repeated = fragment.name == current.name and not (current.arguments and fragment.arguments)
    return fragment.index is None or not repeated


def _to_fragment(entry: Mapping[str, object]) -> _Fragment:
    function = json_values.as_mapping(entry.get("function"))
    wire_id = entry.get("id")
    return _Fragment(
        index=_to_index(entry.get("index")),
        id=str(wire_id) if isinstance(wire_id, int) else json_values.as_text(wire_id),
        name=json_values.as_text(function.get("name")).strip(),
        arguments=_arguments_text(function.get("arguments")),
        extra={key: value for key, value in entry.items() if key not in _KNOWN and value is not None},
    )


def _to_index(value: object) -> int | None:
    if isinstance(value, str) and _INDEX.fullmatch(value):
        return int(value)
    return value if isinstance(value, int) else None


def _arguments_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json_values.to_json(value)


def _merge_objects(old: Mapping[str, object], new: Mapping[str, object]) -> dict[str, object]:
    """Merge objects into each other; other values are replaced."""
    merged = dict(old)
    for key, value in new.items():
        before = merged.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        merged[key] = _merge_objects(before, value) if both else value  # type: ignore[arg-type]  # both are mappings or texts
    return merged


class AnswerReader:
    """Reads one answer; `finish` closes it, and `to_turn` returns the `Turn`."""

    def __init__(self) -> None:
        self.spoke = False
        """Whether anything of an answer came, be it empty."""
        self._pieces: list[_Piece] = []  # of the payload that is read
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._logprobs: list[Logprobs] = []
        self._refusal_logprobs: list[Logprobs] = []
        self._held_logprobs: Logprobs = ()  # of tokens that are not shown yet
        self._annotations: list[dict[str, Any]] = []
        self._fingerprint: object = None
        self._splitter = ThinkSplitter()
        self._calls = CallAccumulator()
        self._finish_reason: str | None = None
        self._usage: Usage | None = None
        self._whole = False
        self._thoughts, self._words = json_values.SurrogateJoiner(), json_values.SurrogateJoiner()
        self._refusing = json_values.SurrogateJoiner()
        self._kinds_seen: set[str] = set()
        self._beside: Mapping[str, object] = {}

    def feed(self, payload: Mapping[str, object]) -> list[_Piece]:
        """Take one payload; return the pieces to show."""
        self._usage = read_usage(payload) or self._usage
        self._fingerprint = payload.get("system_fingerprint") or self._fingerprint
        choices = payload.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            # Azure's asynchronous filter results are choices without a delta (autogen#6465).
            if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
                self.spoke = True
                self._read_choice(choice)
        return self._take_pieces()

    def finish(self) -> list[_Piece]:
        """Return the pieces still held back."""
        beside, self._beside = self._beside, {}
        self._read_message(beside, {}, besides=frozenset(self._kinds_seen))
        self._read_reasoning(self._thoughts.close())
        self._collect_pieces(self._splitter.feed(self._words.close()))
        self._collect_pieces(self._splitter.close())
        self._read_refusal(self._refusing.close(), ())
        return self._take_pieces()

    def mark_whole(self) -> None:
        """Mark the answer as whole without a finish reason.

        The server has shown its end in another manner.
        """
        self._whole = True

    @property
    def has_finish_reason(self) -> bool:
        """True if the server sent a finish reason. A failure after that spoils nothing."""
        return self._finish_reason is not None

    @property
    def broke_off(self) -> bool:
        """True if the answer ended without the server's mark of its end."""
        return self.spoke and not (self._whole or self.has_finish_reason)

    @property
    def without_arguments(self) -> frozenset[str]:
        """The names of calls without any arguments from the server."""
        return self._calls.without_arguments

    def to_turn(self, taken: Collection[str]) -> Turn:
        """Return the whole answer, with call ids other than those `taken`."""
        return Turn(
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            calls=self._calls.finish(taken, cut_off=self.broke_off or self._finish_reason == "length"),
            finish_reason=BROKE_OFF if self.broke_off else self._finish_reason,
            usage=self._usage,
            details=AnswerDetails(
                refusal="".join(self._refusal),
                logprobs=tuple(chain.from_iterable(self._logprobs)),
                refusal_logprobs=tuple(chain.from_iterable(self._refusal_logprobs)),
                annotations=tuple(self._annotations),
                fingerprint=json_values.as_text(self._fingerprint),
            ),
        )

    def _take_pieces(self) -> list[_Piece]:
        pieces, self._pieces = self._pieces, []
        return pieces

    def _read_choice(self, choice: Mapping[str, object]) -> None:
        delta, message = choice.get("delta"), json_values.as_mapping(choice.get("message"))
        if delta is not None and message:
            # Perplexity repeats the whole text so far in `message` beside every delta, also an empty one.
            self._beside = message
        self._read_message(
            message if delta is None else json_values.as_mapping(delta),
            json_values.as_mapping(choice.get("logprobs")),
        )
        self._finish_reason = self._finish_reason or json_values.as_text(choice.get("finish_reason")) or None

    def _read_message(
        self,
        message: Mapping[str, object],
        logprobs: Mapping[str, object],
        *,
        besides: Collection[str] = (),
    ) -> None:
        """Read a delta or a message without the parts in `besides`. Those parts are there already."""
        thought = json_values.first_piece(message, "reasoning_content", "reasoning")
        content = message.get("content")
        if isinstance(content, list):
            thought += _join_parts(content, thinking=True)
            content = _join_parts(content, thinking=False)
        text, refusal = json_values.as_string(content), message.get("refusal")
        calls = message.get("tool_calls")
        if thought and "thought" not in besides:
            self._kinds_seen.add("thought")
            self._read_reasoning(self._thoughts.feed(thought))
        if logprobs and (text or not thought):
            self._held_logprobs += read_logprobs(logprobs.get("content"))
        if text and "words" not in besides:
            self._kinds_seen.add("words")
            self._collect_pieces(self._splitter.feed(self._words.feed(text)))
        if refusal and isinstance(refusal, str) and "refusal" not in besides:
            self._kinds_seen.add("refusal")
            self._read_refusal(self._refusing.feed(refusal), read_logprobs(logprobs.get("refusal")))
        if annotations := message.get("annotations"):
            self._annotations += [one for one in read_citations(annotations) if one not in self._annotations]
        if calls and "calls" not in besides:
            self._kinds_seen.add("calls")
            self._calls.feed(calls)

    def _read_reasoning(self, piece: str) -> None:
        if piece:
            self._collect_pieces([ReasoningDelta(piece)])

    def _read_refusal(self, piece: str, logprobs: Logprobs) -> None:
        if piece:
            self._refusal.append(piece)
            self._refusal_logprobs.append(logprobs)
            self._pieces.append(RefusalDelta(piece, logprobs))

    def _collect_pieces(self, pieces: Iterable[_Piece]) -> None:
        for piece in pieces:
            (self._text if isinstance(piece, TextDelta) else self._reasoning).append(piece.text)
            self._pieces.append(self._with_logprobs(piece) if self._held_logprobs else piece)

    def _with_logprobs(self, piece: _Piece) -> _Piece:
        """Return a piece with the log probabilities of its tokens; those of reasoning are not shown."""
        logprobs, self._held_logprobs = self._held_logprobs, ()
        if isinstance(piece, ReasoningDelta):
            return piece
        self._logprobs.append(logprobs)
        return TextDelta(piece.text, logprobs)


def _join_parts(content: list[object], *, thinking: bool) -> str:
    """Join the texts of content parts: either the thinking ones or the others (Magistral)."""
    texts = []
    for part in content:
        member = json_values.as_mapping(part)
        inner = member.get("thinking")
        if isinstance(part, str) and not thinking:
            texts.append(part)
        elif (inner is not None) is thinking:
            texts.append(_reasoning_text(inner) if thinking else json_values.as_string(member.get("text")))
    return "".join(texts)


def _reasoning_text(inner: object) -> str:
    if isinstance(inner, list):
        return "".join(json_values.as_string(json_values.as_mapping(part).get("text")) for part in inner)
    return json_values.as_string(inner)
