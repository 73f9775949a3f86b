"""The stream splitter that all dialects share: text to show on one side, calls on the other."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Final

from beckon_agent.dialects.base import Item, NewId
from beckon_agent.dialects.calls import RawCall
from beckon_agent.dialects.source import Damaged, Incomplete, Source, Steps
from beckon_agent.dialects.typed import Toolbox
from beckon_agent.model.types import Declaration, TextDelta, ToolCall

UNREAD_LENGTH: Final = 500
"""Characters that are kept of one piece of markup that could not be read."""
UNREAD_PIECES: Final = 20

Form = Callable[[Source, Toolbox], Steps[Sequence[RawCall] | None]]
"""One way of writing a call, entered right after its opener.

It returns the calls that it read; none if this was markup that cannot be used (it is not
shown, but noted as unread), and None if it was no markup: what it took is text. It raises
Damaged or Incomplete for unusable markup, too; `up_to` tells where such markup ends.
"""


@dataclass(frozen=True)
class Grammar:
    """How a family of models marks its calls: a table from openers to forms.

    `line` is a form that has no opener but begins a line (ChatGLM3's name of the tool);
    `silent` are tokens that mean nothing to the reader and are never shown. `trims` says that
    blanks before a text belong to the markup.
    """

    forms: Mapping[str, Form]
    line: Form | None = None
    silent: frozenset[str] = frozenset()
    trims: bool = False

    @cached_property
    def _literals(self) -> list[str]:
        # The longest first: where one begins another, the longer is meant.
        literals = {*self.forms, *self.silent} | ({"\n"} if self.line else set())
        return sorted(literals, key=lambda literal: (-len(literal), literal))

    @cached_property
    def _stops(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(literal) for literal in self._literals))

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(literal[:end] for literal in self._literals for end in range(1, len(literal)))

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._prefixes), default=0)

    def stop(self, text: str, at: int, *, ended: bool) -> tuple[int, int]:
        """Return the span of the first opener in `text`, or an empty one where prose is certain to end."""
        found = self._stops.search(text, at)
        held = len(text) if ended else self._held(text, at)
        if found and found.start() < held:
            return found.span()
        return held, held

    def _held(self, text: str, at: int) -> int:
        """Return where the tail begins that may yet become an opener, or a longer one."""
        for start in range(max(at, len(text) - self._longest), len(text)):
            if text[start:] in self._prefixes:
                return start
        return len(text)


def up_to(closer: str, form: Form) -> Form:
    """Return `form`, taking damaged markup to its closer, so that no half of it is shown as text."""

    def read(source: Source, tools: Toolbox) -> Steps[Sequence[RawCall] | None]:
        try:
            return (yield from form(source, tools))
        except Incomplete:
            raise
        except Damaged:
            yield from source.until(closer)
            return ()

    return read


class MarkupReader:
    """Reads one answer by a grammar; see `Reader` in `base` for what it promises."""

    def __init__(self, grammar: Grammar, tools: Sequence[Declaration], new_id: NewId) -> None:
        self._grammar = grammar
        self._tools = Toolbox(tools)
        self._new_id = new_id
        self._source = Source()
        self._out: list[Item] = []
        self._blank: list[str] = []
        self._said = False
        self._called = False
        self._at_line_start = True
        self._unread: list[str] = []
        self._steps = self._read()

    @property
    def unread(self) -> tuple[str, ...]:
        """The beginnings of markup that could not be read as a call; it was not shown."""
        return tuple(self._unread)

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return what is certain by now, in order."""
        if text:
            self._source.feed(text)
        return self._go_on()

    def finish(self) -> list[Item]:
        """Say that the answer is over; return the rest."""
        self._source.ended = True
        found = self._go_on()
        if self._blank and not (self._called or self._grammar.trims):  # blanks are all that was said
            found.append(TextDelta("".join(self._blank)))
        self._blank.clear()
        return found

    def _go_on(self) -> list[Item]:
        next(self._steps, None)
        found = [item for _, group in groupby(self._out, type) for item in _joined(list(group))]
        self._out.clear()
        return found

    def _say(self, text: str) -> None:
        """Show text; blanks wait for what follows, since those around a call belong to its markup."""
        if not self._said and (not text or text.isspace()):
            self._blank.append(text)
            return
        if not self._said and self._grammar.trims:
            self._blank, text = [], text.lstrip()
        self._out += [TextDelta(piece) for piece in (*self._blank, text) if piece]
        self._blank.clear()
        self._said = True

    def _call(self, calls: Sequence[RawCall]) -> None:
        self._out += [ToolCall(self._new_id(), call.name, call.arguments) for call in calls]
        self._blank.clear()
        self._said, self._called = False, True

    def _read(self) -> Steps[None]:
        source, grammar = self._source, self._grammar
        while True:
            while self._at_line_start and grammar.line:
                source.mark()
                yield from self._enter(grammar.line)
            opener = yield from self._prose()
            if not opener:
                return
            self._at_line_start = True
            if opener == "\n":
                self._say(opener)
            elif opener in grammar.forms:
                yield from self._enter(grammar.forms[opener])

    def _prose(self) -> Steps[str]:
        """Say everything up to the next opener, take that and return it; empty at the end."""
        source = self._source
        while True:
            start, end = self._grammar.stop(source.text, source.at, ended=source.ended)
            self._say(source.text[source.at : start])
            source.at = start
            source.mark()
            source.at = end
            if end > start or source.ended:
                return source.text[start:end]
            yield

    def _enter(self, form: Form) -> Steps[None]:
        source = self._source
        try:
            calls = yield from form(source, self._tools)
        except Damaged as damage:
            calls = ()
            if isinstance(damage, Incomplete):
                source.at = len(source.text)
        raw = source.raw()
        self._at_line_start = bool(calls) or raw.endswith("\n")
        if calls is None:
            self._say(raw)
        elif calls:
            self._call(calls)
        elif len(self._unread) < UNREAD_PIECES:
            self._unread.append(raw[:UNREAD_LENGTH])


def _joined(group: list[Item]) -> list[Item]:
    texts = [item.text for item in group if isinstance(item, TextDelta)]
    return [TextDelta("".join(texts))] if texts else group
