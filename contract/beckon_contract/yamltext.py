"""YAML and JSON texts as plain data, as the Kubernetes tools read them; and plain data as YAML.

Reading is built on the events of libyaml, not on PyYAML's loaders: those turn dates into objects and 1e3
into a string, keep the last of two equal keys in silence, let aliases grow without bound, and
die of deep nesting. What comes out has the types of JSON and nothing else.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
import yaml

MAX_DEPTH = 100
MAX_NODES = 2_000_000  # values in one document; a list of 5,000 EventTypes has about 200,000
MAX_ALIASED = 10_000  # values that the aliases of one document may stand for

_TOO_DEEP = f"it is nested deeper than {MAX_DEPTH} levels"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_PATH_PART = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
# YAML 1.1, as kubectl reads it; without its numbers to the base of sixty.
_BOOLEANS = {
    spelt: value
    for word, value in (
        ("true", True),
        ("yes", True),
        ("on", True),
        ("false", False),
        ("no", False),
        ("off", False),
    )
    for spelt in (word, word.capitalize(), word.upper())
}
# YAML 1.2, as nearly everything else reads it: Norway's NO is a text.
_CORE_BOOLEANS = {spelt: value for spelt, value in _BOOLEANS.items() if spelt.lower() in ("true", "false")}
_INTEGER = re.compile(r"[-+]?(0b[01][01_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|0[0-7_]*|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset({f"{_TAG}{kind}" for kind in ("null", "bool", "int", "float", "timestamp")})


class NotReadable(ValueError):
    """A text is no document for Kubernetes. The message says where and why."""


def split_documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of every non-empty YAML document.

    Split at lines of `---`, as kubectl does, so that one broken document costs no other.
    """
    marks = list(_SEPARATOR.finditer(text))
    starts = [0, *(mark.end() for mark in marks)]
    ends = [*(mark.start() for mark in marks), len(text)]
    line = 1
    for index, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if index:
            line += text.count("\n", starts[index - 1], start)
        document = text[start:end]
        if not _is_empty(document):
            yield line, document


def _is_empty(document: str) -> bool:
    """Return True if a document has no content. It may have space, comments, directives and its end mark."""
    return all(not line.strip() or line.startswith(("#", "%", "...")) for line in document.splitlines())


def read_document(text: str, first_line: int = 1, *, core: bool = False) -> object:
    """Return one YAML or JSON document as plain data; raise `NotReadable`.

    `core` is for documents that are not meant for Kubernetes: yes, no, on and off are texts in YAML 1.2.
    """
    if not text.isascii() and _SURROGATE.search(text):
        raise NotReadable("the text is not UTF-8: it holds half of a surrogate pair")
    if text.lstrip()[:1] in {"{", "["}:
        try:
            return read_json(text)
        except NotReadable:
            # Flow style looks like JSON; where neither fits, the message of YAML names the line.
            return _Reader(text, first_line, core=core).read()
    return _Reader(text, first_line, core=core).read()


def find_line(text: str, path: str, first_line: int = 1) -> int:
    """Return the line of a field of a document, such as `spec.filters[0].exact`.

    If a part of the path is absent, it is the line of the part before. Raises `NotReadable`.
    """
    read_document(text, first_line)  # has limits, which the composer below has not
    node = yaml.compose(text, Loader=_LOADER)
    line = node.start_mark.line if node else 0
    for index, name in _PATH_PART.findall(path):
        part = name or index
        if isinstance(node, yaml.MappingNode):
            pairs = [(key, value) for key, value in node.value if key.value == part]
        elif isinstance(node, yaml.SequenceNode) and part.isdecimal():
            pairs = [(one, one) for one in node.value[int(part) :][:1]]
        else:
            pairs = []
        if not pairs:
            break
        key, node = pairs[0]
        line = key.start_mark.line
    return first_line + int(line)


def read_json(text: str) -> object:
    """Return the data of a JSON text; raise `NotReadable`.

    Refuses a name that appears twice, and everything that only some readers of JSON take: NaN, numbers
    beyond a double, lone surrogates, and nesting that is too deep.
    """
    try:
        orjson.loads(text)
        value: object = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        raise NotReadable(_TOO_DEEP) from None
    except ValueError as error:
        raise NotReadable(str(error)) from None
    check_depth(value)
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise NotReadable(f"the name {name!r} is twice in one object")
        members[name] = value
    return members


def check_depth(value: object) -> None:
    """Raise `NotReadable` for data nested deeper than `MAX_DEPTH`.

    Reading or comparing it could exhaust the stack.
    """
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise NotReadable(_TOO_DEEP)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


class _Reader:
    """Turns the events of one YAML document into plain data."""

    def __init__(self, text: str, first_line: int, *, core: bool) -> None:
        self._booleans = _CORE_BOOLEANS if core else _BOOLEANS
        self._events = yaml.parse(text, Loader=_LOADER)
        self._first_line = first_line
        self._anchors: dict[str, tuple[object, int]] = {}
        self._nodes = 0
        self._aliased = 0

    def read(self) -> object:
        """Return the data of the only document."""
        try:
            starts = (event for event in self._events if isinstance(event, yaml.DocumentStartEvent))
            documents = [self._value(next(self._events), 0) for _ in starts]
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            where = f"line {self._first_line + mark.line}: " if mark else ""
            raise NotReadable(f"{where}{error.problem or error.context}") from None
        except yaml.YAMLError as error:
            raise NotReadable(" ".join(str(error).split())) from None
        if len(documents) > 1:
            raise NotReadable("'...' is followed by more; start every document with a line of ---")
        return documents[0] if documents else None

    def _value(self, event: yaml.Event, depth: int) -> object:
        before = self._nodes
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise self._error(event, _TOO_DEEP)
        if self._nodes > MAX_NODES:
            raise self._error(event, f"more than {MAX_NODES} values; split the document")
        match event:
            case yaml.AliasEvent():
                return self._alias(event)
            case yaml.ScalarEvent():
                value = self._scalar(event)
            case yaml.SequenceStartEvent():
                self._check_tag(event, "seq")
                value = self._sequence(depth)
            case yaml.MappingStartEvent():
                self._check_tag(event, "map")
                value = self._mapping(depth)
            case _:
                raise self._error(event, "a value is missing")
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._nodes - before
        return value

    def _alias(self, event: yaml.AliasEvent) -> object:
        if event.anchor not in self._anchors:
            raise self._error(event, f"alias *{event.anchor} has no finished anchor before it")
        value, size = self._anchors[event.anchor]
        self._nodes += size
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise self._error(event, f"aliases stand for more than {MAX_ALIASED} values; write them out")
        return value

    def _sequence(self, depth: int) -> list[object]:
        items = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        merged: dict[str, object] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
                merged = {**self._merged(event, depth), **merged}
                continue
            name = self._name(event, depth)
            if name in members:
                raise self._error(event, f"the key {name!r} is twice in one mapping")
            members[name] = self._value(next(self._events), depth + 1)
        return {**merged, **members}

    def _merged(self, event: yaml.Event, depth: int) -> dict[str, object]:
        """Return the members from a merge key; the first of several mappings counts."""
        value = self._value(next(self._events), depth + 1)
        merged: dict[str, object] = {}
        for mapping in value if isinstance(value, list) else [value]:
            if not isinstance(mapping, dict):
                raise self._error(event, "<< must name a mapping")
            merged = {**mapping, **merged}
        return merged

    def _name(self, event: yaml.Event, depth: int) -> str:
        """Return a key as text: YAML reads on, 5 and 1.5 as other types, Kubernetes as their text."""
        value = self._value(event, depth + 1)
        if isinstance(value, str):
            return value
        if isinstance(value, bool | int | float):
            return json.dumps(value)
        raise self._error(event, "a key must be a string; write it in quotes")

    def _scalar(self, event: yaml.ScalarEvent) -> object:
        text = event.value
        if not text.isascii() and _SURROGATE.search(text):
            raise self._error(event, "half of a surrogate pair is no character; write the character itself")
        if event.tag in _SCALAR_TAGS or (event.tag is None and event.implicit[0]):
            return self._plain(event, text)
        self._check_tag(event, "str")
        return text

    def _plain(self, event: yaml.Event, text: str) -> object:
        """Return the value of a scalar without quotes; dates stay text."""
        if text in _NULLS:
            return None
        if text in self._booleans:
            return self._booleans[text]
        if text[0] not in "-+.0123456789":
            return text
        if _NOT_FINITE.fullmatch(text):
            raise self._error(event, f"{text} cannot be written in JSON; write it in quotes")
        try:
            return _number(text)
        except (ValueError, OverflowError):
            raise self._error(event, f"the number {text[:40]} is too large; write it in quotes") from None

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent, kind: str) -> None:
        if event.tag not in {None, "!", _TAG + kind}:
            raise self._error(event, f"the tag {event.tag} has no meaning in a manifest; remove it")

    def _error(self, event: yaml.Event, message: str) -> NotReadable:
        mark = event.start_mark
        return NotReadable(f"line {self._first_line + mark.line}: {message}" if mark else message)


def _number(text: str) -> int | float | str:
    """Return a number as YAML 1.1 writes it, other text unchanged."""
    if _INTEGER.fullmatch(text):
        digits = text.replace("_", "").lstrip("+")
        octal = digits.lstrip("-").startswith("0") and digits.lstrip("-0").isdigit()
        return int(digits, 8 if octal else 0)
    if not _FLOAT.fullmatch(text):
        return text
    number = float(text)
    if number in {float("inf"), float("-inf")}:
        raise OverflowError
    return number


UNPRINTABLE = re.compile(
    "[^\\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""What YAML takes for a line break of its own, or for no character at all."""


class _Dumper(yaml.SafeDumper):
    """YAML as people write it: lists indented, text of several lines as a block, no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar(f"{_TAG}str", value, style='"' if UNPRINTABLE.search(value) else style)


_Dumper.add_representer(str, _represent_text)


def write_yaml(document: Mapping[str, Any], width: int = 100) -> str:
    """Return a document as YAML, with lines of about `width` characters."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=width)
