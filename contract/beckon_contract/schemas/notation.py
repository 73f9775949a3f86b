"""Type names as people write them: JSON Schema's own, Python's, and the prototype's `list:string`."""

import re

from beckon_contract.schemas.keywords import Schema

_SPELLINGS = {
    "string": "string str text char varchar file secret",
    "integer": "integer int long short byte int32 int64 uint32 uint64",
    "number": "number float double decimal num numeric",
    "boolean": "boolean bool",
    "object": "object dict map mapping struct hash hashmap json",
    "array": "array list tuple set arraylist sequence",
    "null": "null none nonetype nil",
}
_TYPES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_FORMATS = {"date": "date", "datetime": "date-time", "date-time": "date-time", "timestamp": "date-time"}
_ANYTHING = frozenset({"any", "unknown", "*"})
_LIST = re.compile(r"(?P<list>\w+)\s*(?::\s*(?P<plain>.+)|\[(?P<square>.+)\]|<(?P<angle>.+)>)", re.DOTALL)
_MAX_LENGTH = 100


def read_type(name: str) -> Schema | None:
    """Return the schema of a type name, or `None`.

    `None` means that the name is no type.

    Case does not matter (Gemini writes `STRING`). `list:T`, `list[T]` and `array<T>` are arrays of T,
    `A|B` is either, `any` is no constraint.
    """
    if len(name) > _MAX_LENGTH:
        return None
    return _read(name.strip().lower())


def _read(name: str) -> Schema | None:
    if name in _TYPES:
        return {"type": _TYPES[name]}
    if name in _FORMATS:
        return {"type": "string", "format": _FORMATS[name]}
    if name in _ANYTHING:
        return {}
    if found := _LIST.fullmatch(name):
        return _read_list(found)
    if "|" in name:
        return _read_union(name)
    return None


def _read_list(found: re.Match[str]) -> Schema | None:
    if _TYPES.get(found["list"]) != "array":
        return None
    items = _read((found["plain"] or found["square"] or found["angle"]).strip())
    return None if items is None else {"type": "array", "items": items}


def _read_union(name: str) -> Schema | None:
    branches = [_read(part.strip()) for part in name.split("|")]
    if any(branch is None for branch in branches):
        return None
    known = [branch for branch in branches if branch is not None]
    if all(set(branch) == {"type"} for branch in known):
        return {"type": list(dict.fromkeys(branch["type"] for branch in known))}
    return {"anyOf": known}
