"""A top-down parser for an answer's text, resumed as more arrives."""

import re
from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""A parser that yields for more text and returns a T."""

LOOKAHEAD = 256
"""Blanks that are looked over, in characters, before something optional counts as absent."""

_SPACE = re.compile(r"\s*")


class Damaged(Exception):
    """The markup cannot be read from here on.

    `taken` is the text understood so far, `depth` the number of its open brackets.
    """

    def __init__(self, taken: str = "", depth: int = 0) -> None:
        super().__init__(taken, depth)
        self.taken = taken
        self.depth = depth


class Incomplete(Damaged):
    """The answer ended within the markup."""


class TextSource:
    """A buffer with a position. `text` and `at` are for scanners in need of speed."""

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.ended = False
        self._marked = 0
        self._taken: list[str] = []
        self._aside = 0

    def feed(self, text: str) -> None:
        """Append a piece, and drop the consumed text from the buffer. Text since the mark is stored aside."""
        self._taken.append(self.text[self._marked : self.at])
        self._aside += self.at - self._marked
        self.text = self.text[self.at :] + text
        self.at = self._marked = 0

    def mark(self) -> None:
        """Mark this place: `raw` begins here."""
        self._taken.clear()
        self._aside, self._marked = 0, self.at

    @property
    def size(self) -> int:
        """The number of characters consumed since the mark."""
        return self._aside + self.at - self._marked

    def raw(self) -> str:
        """Return the text consumed since the mark."""
        return "".join(self._taken) + self.text[self._marked : self.at]

    def peek(self) -> Steps[str]:
        """Return the next character without taking it; empty at the end."""
        while self.at >= len(self.text) and not self.ended:
            yield
        return self.text[self.at : self.at + 1]

    def take_character(self) -> Steps[str]:
        """Take one character; raise Incomplete at the end."""
        character = yield from self.peek()
        if not character:
            raise Incomplete
        self.at += 1
        return character

    def starts_with(self, literal: str) -> Steps[bool]:
        """True if `literal` comes next; nothing is taken."""
        while True:
            have = self.text[self.at : self.at + len(literal)]
            if have == literal:
                return True
            if self.ended or not literal.startswith(have):
                return False
            yield

    def take_literal(self, literal: str) -> Steps[bool]:
        """Take `literal` if it comes next."""
        if not (yield from self.starts_with(literal)):
            return False
        self.at += len(literal)
        return True

    def expect_literal(self, literal: str) -> Steps[None]:
        """Take `literal`; raise Damaged at other text, Incomplete at the end."""
        if not (yield from self.take_literal(literal)):
            raise self.error_here()

    def error_here(self) -> Damaged:
        """Return the error for this place: Incomplete at the end, else Damaged."""
        return Incomplete() if self.ended and self.at >= len(self.text) else Damaged()

    def skip_blanks(self) -> Steps[None]:
        """Take all blanks."""
        yield from self.take_match(_SPACE)

    def take_match(self, pattern: re.Pattern[str], limit: int | None = None) -> Steps[str]:
        """Take the longest match of `pattern`, at most `limit` characters.

        The pattern has the form `[...]*`.
        """
        parts: list[str] = []
        room = limit
        while True:
            end = len(self.text) if room is None else min(len(self.text), self.at + room)
            match = pattern.match(self.text, self.at, end)
            stop = match.end() if match else self.at
            parts.append(self.text[self.at : stop])
            room = None if room is None else room - (stop - self.at)
            self.at = stop
            if stop < len(self.text) or room == 0 or self.ended:
                return "".join(parts)
            yield

    def take_until(self, *stops: str) -> Steps[tuple[str, str]]:
        """Take everything up to the first of `stops`, and the stop itself.

        Return both; the stop is empty at the end.
        """
        pattern = _alternatives_pattern(stops)
        longest = max(len(stop) for stop in stops)
        parts: list[str] = []
        while True:
            match = pattern.search(self.text, self.at)
            if match:
                parts.append(self.text[self.at : match.start()])
                self.at = match.end()
                return "".join(parts), match.group()
            keep = len(self.text) if self.ended else max(self.at, len(self.text) - longest + 1)
            parts.append(self.text[self.at : keep])
            self.at = keep
            if self.ended:
                return "".join(parts), ""
            yield

    def beyond_space(self) -> Steps[str]:
        """Return the character after the next blanks; empty at the end. Nothing is taken."""
        blank = yield from self._count_blanks()
        return self.text[self.at + blank : self.at + blank + 1]

    def after_space(self, *literals: str) -> Steps[str]:
        """Take a run of blanks and one of `literals` after it, or nothing. Return the literal."""
        blank = yield from self._count_blanks()
        return (yield from self._literal_at(blank, literals))

    def _count_blanks(self) -> Steps[int]:
        blank = 0
        while blank < LOOKAHEAD:
            following = self.text[self.at + blank : self.at + blank + 1]
            if following.isspace():
                blank += 1
            elif following or self.ended:
                break
            else:
                yield
        return blank

    def _literal_at(self, offset: int, literals: tuple[str, ...]) -> Steps[str]:
        longest = max(len(literal) for literal in literals)
        while True:
            have = self.text[self.at + offset : self.at + offset + longest]
            if not self.ended and any(literal.startswith(have) and literal != have for literal in literals):
                yield
                continue
            chosen = next((literal for literal in literals if have.startswith(literal)), "")
            if chosen:
                self.at += offset + len(chosen)
            return chosen


def _alternatives_pattern(stops: tuple[str, ...]) -> re.Pattern[str]:
    # re keeps compiled patterns itself; the longest goes first so that a prefix never wins.
    return re.compile("|".join(re.escape(stop) for stop in sorted(stops, key=len, reverse=True)))
