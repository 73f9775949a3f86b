"""Assembly of streamed tool calls from their fragments.

OpenAI sends an index with every fragment, and the id and the name once. Others
send no index, the same index for every call, a new id with every fragment, no id,
a name twice, or arguments as an object. So a fragment is judged by what the call
before it still lacks, and never by its id alone.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from beckon_agent.core import json_values
from beckon_agent.core.call_ids import call_id, may_stay
from beckon_agent.core.model_types import ToolCall

_KNOWN = frozenset({"index", "id", "type", "function"})


@dataclass(frozen=True, slots=True)
class _Fragment:
    """One entry of `delta.tool_calls`, read null-safely.

    Missing texts are empty.
    """

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
    if isinstance(value, str) and value.isdecimal():
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
