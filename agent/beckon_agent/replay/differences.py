"""Where two JSON documents differ first, and how: what people read, and what programs do."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

_MOST_LINES = 2_000
_LONGEST_LINE = 2_000  # characters
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: the path to it, of names and numbers, and a unified diff of what is there."""

    where: str
    diff: str


def first_difference(where: str, recorded: object, replayed: object) -> Difference | None:
    """Return the first difference of two JSON values, `None` where they are the same byte for byte."""
    if _text(recorded) == _text(replayed):
        return None
    match recorded, replayed:
        case Mapping(), Mapping():
            # In the order of what was recorded, and then what is new.
            pairs = [
                (f"{where}.{name}", recorded.get(name, _MISSING), replayed.get(name, _MISSING))
                for name in dict.fromkeys([*recorded, *replayed])
            ]
        case list(), list():
            both = zip_longest(recorded, replayed, fillvalue=_MISSING)
            pairs = [(f"{where}[{index}]", old, new) for index, (old, new) in enumerate(both)]
        case _:
            return Difference(where, unified(recorded, replayed))
    for place, old, new in pairs:
        if (old is _MISSING) != (new is _MISSING):
            return Difference(place, unified(old, new))
        if found := first_difference(place, old, new):
            return found
    return Difference(where, "the same members, in another order")


def unified(recorded: object, replayed: object) -> str:
    """Return a unified diff of two JSON values as people read them; of long ones the beginning."""
    lines = difflib.unified_diff(_lines(recorded), _lines(replayed), "recorded", "now", lineterm="")
    return "\n".join(lines)


def same(recorded: object, replayed: object) -> bool:
    """Whether two JSON values are the same byte for byte."""
    return _text(recorded) == _text(replayed)


def _lines(value: object) -> Sequence[str]:
    if value is _MISSING:
        return ()
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    lines = text.splitlines() or [""]
    shown = [
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in lines[:_MOST_LINES]
    ]
    return shown if len(lines) <= _MOST_LINES else [*shown, f"… {len(lines) - _MOST_LINES} lines more"]


def _text(value: object) -> str | None:
    return None if value is _MISSING else json.dumps(value)
