"""JSON in a model's text: the end of a value, and damaged values."""

import json
import re
from typing import Final

from beckon_agent.dialects.text_parser import Damaged, Incomplete, Steps, TextSource

MAX_DEPTH: Final = 128
"""Nesting beyond this is no tool call; Python's own parsers recurse."""

MAX_WORD: Final = 400
"""The longest number or word, in characters."""

_BLANK = re.compile(r"[ \t\r\n]+")
_WORD = re.compile(r'[^\s\[\]{},:"]+')
_IN_STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_CLOSER = {"{": "}", "[": "]"}
_AFTER_COMMA = {"}": "key", "]": "value"}
# What may come where ("w": a number or word). A trailing comma passes: it is repaired later.
_ALLOWED = {
    "first": frozenset("{["),
    "value": frozenset('{["w]'),
    "key": frozenset('"}'),
    "colon": frozenset(":"),
    "member": frozenset('{["w'),
    "next": frozenset(",}]"),
}


class _Scanner:
    """Finds the end of one object or array, piece by piece, in one pass and without recursion."""

    def __init__(self) -> None:
        self.done = False
        self.damaged = False
        self._closers: list[str] = []
        self._want = "first"
        self._in_string = False

    @property
    def depth(self) -> int:
        """The number of open brackets."""
        return len(self._closers)

    def scan(self, text: str, at: int, end: int, *, last: bool) -> int:
        """Return how far `text` up to `end` is understood; `last` when no more will come."""
        while at < end and not self.done and not self.damaged:
            after = (
                self._scan_string(text, at, end)
                if self._in_string
                else self._scan_token(text, at, end, last=last)
            )
            if after == at:
                break
            at = after
        return at

    def _scan_string(self, text: str, at: int, end: int) -> int:
        match = _IN_STRING.match(text, at, end)
        stop = match.end() if match else at
        if stop == end or text[stop] != '"':
            return stop
        self._in_string = False
        self._want = "colon" if self._want == "key" else "next"
        return stop + 1

    def _scan_token(self, text: str, at: int, end: int, *, last: bool) -> int:
        blank = _BLANK.match(text, at, end)
        if blank:
            return blank.end()
        word = _WORD.match(text, at, end)
        stop = word.end() if word else at + 1
        if word and stop == end and not last and stop - at < MAX_WORD:
            return at  # it may go on
        kind = "w" if word else text[at]
        if kind not in _ALLOWED[self._want] or len(self._closers) > MAX_DEPTH or stop - at >= MAX_WORD:
            self.damaged = True
            return at
        self._count_bracket(kind)
        return at if self.damaged else stop

    def _count_bracket(self, kind: str) -> None:
        if kind in _CLOSER:
            self._closers.append(_CLOSER[kind])
            self._want = "key" if kind == "{" else "value"
        elif kind in "}]":
            self.damaged = kind != self._closers.pop()
            self._want, self.done = "next", not (self._closers or self.damaged)
        elif kind == ",":
            self._want = _AFTER_COMMA[self._closers[-1]]
        elif kind == '"':
            self._in_string = True
        else:
            self._want = "member" if kind == ":" else "next"


def json_value(source: TextSource, before: str = "", limit: int | None = None) -> Steps[str]:
    """Take one JSON object or array and return its text.

    `before` is its beginning, already taken. Raises Damaged at the first character that cannot be JSON, or
    beyond `limit` characters; Incomplete if the answer ends first. Everything understood until then is
    taken.
    """
    scanner, parts = _Scanner(), [before]
    scanner.scan(before, 0, len(before), last=False)
    room = limit
    while True:
        start = source.at
        end = len(source.text) if room is None else min(len(source.text), start + room)
        source.at = scanner.scan(source.text, start, end, last=source.ended)
        parts.append(source.text[start : source.at])
        if scanner.done:
            return "".join(parts)
        if scanner.damaged or end < len(source.text):
            raise Damaged("".join(parts), scanner.depth)
        if source.ended:
            raise Incomplete
        room = None if room is None else room - (source.at - start)
        yield


def any_json(source: TextSource, closer: str = "", before: str = "") -> Steps[str]:
    """Take a JSON value, even a damaged one.

    A damaged value goes up to `closer`, or without one, to the balance of its brackets.
    """
    try:
        return (yield from json_value(source, before))
    except Incomplete:
        raise
    except Damaged as damage:
        if not closer:
            return damage.taken + (yield from _read_balanced(source, damage.depth))
        rest, stop = yield from source.take_until(closer)
        if not stop:
            raise Incomplete from None
        return damage.taken + rest


def _read_balanced(source: TextSource, depth: int) -> Steps[str]:
    """Take text until `depth` brackets are closed, those in double quotes left out."""
    parts: list[str] = []
    while depth:
        text, stop = yield from source.take_until('"', "{", "}", "[", "]")
        parts += [text, stop]
        if not stop:
            raise Incomplete
        if stop == '"':
            parts.append((yield from _read_quoted(source)))
        else:
            depth += 1 if stop in _CLOSER else -1
    return "".join(parts)


def _read_quoted(source: TextSource) -> Steps[str]:
    parts: list[str] = []
    while True:
        text, stop = yield from source.take_until('"', "\\")
        parts += [text, stop]
        if stop != "\\":
            return "".join(parts)
        parts.append((yield from source.take_character()))


def parse_json(text: str) -> object:
    """Parse JSON, raw line breaks in strings included; raise ValueError on anything else."""
    try:
        return json.loads(text, strict=False, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _no_constant(word: str) -> object:
    raise ValueError(f"{word} is not JSON")


def to_json(value: object) -> str:
    """Write `value` as JSON text, always valid in UTF-8."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can carry
        return json.dumps(value)
    return text
