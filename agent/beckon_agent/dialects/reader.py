"""The stream splitter of all dialects: text to show, and calls."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, takewhile
from typing import Final

from beckon_agent.core.model_types import Declaration, ToolCall
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.base import Allows, Item, NewId, RawCall, ToolSchemas, allow_everything
from beckon_agent.dialects.place import Place
from beckon_agent.dialects.text_parser import Damaged, Incomplete, Steps, TextSource
from beckon_contract.resources.tools import CallOrigin

HELD_LIMIT: Final = 262_144
"""Characters that are held back until they prove to be calls; beyond them the rest of the answer is text."""

_FENCE: Final = "```"
_CLOSES = re.compile(r"/|end|eo[tm]|close", re.IGNORECASE)

Form = Callable[[TextSource, ToolSchemas], Steps[Sequence[RawCall] | None]]
"""One way of writing a call, entered right after its opener.

It returns the calls that it read; none, or None, where there are none: what it took is text.
It raises Damaged or Incomplete for unusable markup, too; `until_closer` says where such markup ends.
"""

_GOES_ON: Final = frozenset(",;")


@dataclass(frozen=True)
class Grammar:
    """The markup of calls for a family of models: forms by their openers.

    `line` is a form without an opener, at the start of a line (ChatGLM3's name of the tool); `silent` are
    tokens of turns, without meaning for the reader, and not shown; `framing` are tokens around calls, shown
    unless a call next to them is made. With `trims`, blanks before a text belong to the markup. With `whole`,
    calls are the whole rest of an answer from the start of a line; otherwise they may have text before and
    after them, but not in the middle of a sentence.
    """

    forms: Mapping[str, Form]
    line: Form | None = None
    silent: frozenset[str] = frozenset()
    framing: frozenset[str] = frozenset()
    trims: bool = False
    whole: bool = False

    @cached_property
    def _literals(self) -> list[str]:
        # The longest first: where one begins another, the longer is meant.
        literals = {*self.forms, *self.silent, *self.framing} | ({"\n"} if self.line else set())
        return sorted(literals, key=lambda literal: (-len(literal), literal))

    @cached_property
    def _stop_pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(literal) for literal in self._literals) or "(?!)")

    @cached_property
    def _prefixes(self) -> frozenset[str]:
        return frozenset(literal[:end] for literal in self._literals for end in range(1, len(literal)))

    @cached_property
    def _first_characters(self) -> re.Pattern[str]:
        """The first characters of the literals, for a quick look at prose without any."""
        first = "".join({literal[0] for literal in self._literals})
        return re.compile(f"[{re.escape(first)}]" if first else "(?!)")

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._prefixes), default=0)

    def find_stop(self, text: str, at: int, *, ended: bool) -> tuple[int, int]:
        """Return the span of the first opener in `text`.

        Without one the span is empty, at the end of the certain prose.
        """
        match = self._stop_pattern.search(text, at)
        end = len(text) if ended else self._held_back_from(text, at)
        if match and match.start() < end:
            return match.span()
        return end, end

    def _held_back_from(self, text: str, at: int) -> int:
        """Return the start of a possible opener at the end of the text.

        It may also be the beginning of a longer one.
        """
        for initial in self._first_characters.finditer(text, max(at, len(text) - self._longest)):
            if text[initial.start() :] in self._prefixes:
                return initial.start()
        return len(text)


def until_closer(closer: str, form: Form) -> Form:
    """Return `form`, taking damaged markup to its closer. So no part of it is read as a call."""

    def read_body(source: TextSource, tools: ToolSchemas) -> Steps[Sequence[RawCall] | None]:
        try:
            return (yield from form(source, tools))
        except Incomplete:
            raise
        except Damaged:
            yield from source.take_until(closer)
            return ()

    return read_body


class MarkupReader:
    """Reads one answer by a grammar; see `Reader` in `base`."""

    def __init__(
        self,
        grammar: Grammar,
        tools: Sequence[Declaration],
        new_id: NewId,
        allows: Allows = allow_everything,
        origin: CallOrigin = "dialect",
    ) -> None:
        self._grammar = grammar
        self._tools = ToolSchemas(tools)
        self._new_id = new_id
        self._allows = allows
        self._origin = origin
        self._source = TextSource()
        self._place = Place()
        self._out: list[Item] = []
        self._held: list[tuple[str, Sequence[RawCall]]] = []
        self._held_size = 0
        self._held_whole = False
        self._blank: list[str] = []
        self._has_text = False
        self._called = False
        self._after_call = False
        self._at_line_start = True
        self._in_section = False  # of markup that began where no call may be written
        self._only_text = False
        self._steps = self._read_answer()

    def feed(self, text: str) -> list[Item]:
        """Take the next piece; return the items certain by now, in order."""
        if text:
            self._source.feed(text)
        return self._advance()

    def finish(self, *, called: bool = False) -> list[Item]:
        """End the answer; return the rest. `called` is True if the server gave calls of its own."""
        self._source.ended = True
        next(self._steps, None)
        if called or not self._holds_call:
            self._show_held()
        else:
            self._emit_held()
        if self._blank and not (self._called or self._grammar.trims):  # blanks are all that was said
            self._out.append(TextDelta("".join(self._blank)))
        self._blank.clear()
        return self._advance()

    def _advance(self) -> list[Item]:
        next(self._steps, None)
        events, self._out = self._out, []
        if len(events) < 2:
            return events
        return [item for _, group in groupby(events, type) for item in _join_texts(list(group))]

    def _show_text(self, text: str) -> None:
        """Show text; blanks after a held call are held with it. Other text decides about the held calls."""
        if not self._held:
            self._show_now(text)
            return
        if not text or text.isspace():
            self._hold_calls(text)
            return
        if self._holds_call and not self._held_whole:
            after = takewhile(lambda held: held[0].isspace(), reversed(self._held))
            following = "".join(reversed([raw for raw, _ in after])) + text
            if not self._sentence_goes_on(following):
                self._emit_held()
                self._show_now(following)
                return
        self._show_held()
        self._show_now(text)

    def _sentence_goes_on(self, following: str) -> bool:
        """True if a sentence with the held calls goes on behind them.

        That is a comma, or a blank and a small letter; a section of calls that begins without a blank has
        none but the comma.
        """
        if following[:1] in _GOES_ON:
            return True
        divided = self._place.after_blank or self._held[0][0] not in self._grammar.framing
        return divided and following[:1] in (" ", "\t") and following[1:2].islower()

    def _show_now(self, text: str) -> None:
        """Show text; blanks wait for the text after them. Blanks around a call belong to its markup."""
        self._place.advance(text)
        if not self._has_text and (not text or text.isspace()):
            self._blank.append(text)
            return
        if not self._has_text and self._grammar.trims:
            self._blank, text = [], text.lstrip()
        if self._blank:
            self._out += [TextDelta(piece) for piece in self._blank if piece]
            self._blank.clear()
        if text:
            self._out.append(TextDelta(text))
        self._has_text = True
        self._after_call = False

    @property
    def _holds_call(self) -> bool:
        return any(calls for _, calls in self._held)

    def _hold_calls(self, raw: str, calls: Sequence[RawCall] = ()) -> None:
        if raw:
            self._held.append((raw, calls))
            self._held_size += len(raw)

    def _show_held(self) -> None:
        """Show everything held, as text."""
        pieces = self._take_held()
        if pieces:
            self._show_now("".join(raw for raw, _ in pieces))

    def _take_held(self) -> list[tuple[str, Sequence[RawCall]]]:
        pieces, self._held, self._held_size, self._held_whole = self._held, [], 0, False
        return pieces

    def _emit_held(self) -> None:
        for _, calls in self._take_held():
            self._emit_calls(calls)

    def _emit_calls(self, calls: Sequence[RawCall]) -> None:
        self._out += [
            ToolCall(self._new_id(), call.name, call.arguments, origin=self._origin) for call in calls
        ]
        self._blank.clear()
        self._has_text, self._called, self._after_call = False, True, True

    def _read_answer(self) -> Steps[None]:
        source, grammar = self._source, self._grammar
        while True:
            while self._at_line_start and grammar.line and self._call_allowed(whole=grammar.whole):
                source.mark()
                yield from self._enter_form(grammar.line, whole=grammar.whole)
            opener = yield from self._read_prose()
            if not opener:
                return
            if opener == "\n":
                self._at_line_start = True
                self._show_text(opener)
            elif self._place.in_fence and not self._held:
                self._show_text(opener)
            elif opener in grammar.forms:
                whole = grammar.whole or opener == _FENCE
                yield from self._enter_form(grammar.forms[opener], whole=whole, breaks="\n" in opener)
            elif opener in grammar.framing:
                self._pass_frame(opener)
            else:
                yield from self._pass_token(opener)

    def _pass_token(self, token: str) -> Steps[None]:
        """Go over a silent token: drop it, or show it as text."""
        if not (yield from self._drops_token(token)):
            self._show_text(token)
            self._in_section = True
            return
        self._at_line_start = True
        if self._held:
            self._hold_calls(token)

    def _pass_frame(self, token: str) -> None:
        """Hold a token around calls; one that closes calls just made is dropped."""
        allowed = self._place.begins_line if self._grammar.whole else self._place.may_hold_call
        if self._held_size > HELD_LIMIT or not (self._held or self._after_call or allowed):
            self._show_text(token)
            self._in_section = True
            return
        self._at_line_start = True
        if self._held or not (self._after_call and _CLOSES.search(token)):
            self._hold_calls(token)

    def _read_prose(self) -> Steps[str]:
        """Show everything up to the next opener, and take the opener. Return the opener; empty at the end."""
        source = self._source
        while True:
            start, end = len(source.text), len(source.text)
            if not self._only_text:
                start, end = self._grammar.find_stop(source.text, source.at, ended=source.ended)
            between = source.text[source.at : start]
            self._in_section = self._in_section and (not between or between.isspace())
            self._show_text(between)
            source.at = start
            source.mark()
            source.at = end
            if end > start or source.ended:
                return source.text[start:end]
            yield

    def _drops_token(self, token: str) -> Steps[bool]:
        """True if a silent token is no part of a sentence.

        With a `whole` grammar, it has to open or close a line.
        """
        if self._held or self._place.begins_line:
            return True
        if not self._grammar.whole:
            return self._place.may_hold_call
        if not _CLOSES.search(token):
            return False
        if (yield from self._source.peek()) in ("", "\r", "\n"):
            return True
        for following in (*self._grammar.silent, *self._grammar.framing):
            if (yield from self._source.starts_with(following)):
                return True
        return False

    def _call_allowed(self, *, whole: bool, breaks: bool = False) -> bool:
        """True if a call may be written here.

        With `whole`, it must be the whole rest of the answer from the start of a line; with `breaks`, its
        opener has a line break.
        """
        if self._holds_call:
            return True
        begins = self._place.begins_line or breaks or not whole
        return begins and self._place.may_hold_call and not self._in_section

    def _enter_form(self, form: Form, *, whole: bool, breaks: bool = False) -> Steps[None]:
        """Read a form; without allowed calls, show it all as text."""
        source, allowed = self._source, self._call_allowed(whole=whole, breaks=breaks)
        calls = yield from self._attempt_form(form)
        raw = source.raw()
        self._only_text = self._held_size + len(raw) > HELD_LIMIT
        if not calls or not allowed or self._only_text or not self._allows(calls, raw):
            self._at_line_start = raw.endswith("\n")
            self._show_text(raw)
            return
        self._at_line_start = True
        if whole or self._holds_call or self._place.in_sentence:
            self._held_whole = self._held_whole or whole
            self._hold_calls(raw, calls)
        else:
            self._take_held()
            self._emit_calls(calls)

    def _attempt_form(self, form: Form) -> Steps[Sequence[RawCall] | None]:
        """Run a form up to the limit of text held back."""
        source = self._source
        steps = form(source, self._tools)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                calls: Sequence[RawCall] | None = stop.value
                return calls
            except Damaged as damage:
                if isinstance(damage, Incomplete):
                    source.at = len(source.text)
                return None
            if source.size > HELD_LIMIT:
                return None
            yield


def _join_texts(group: list[Item]) -> list[Item]:
    texts = [item.text for item in group if isinstance(item, TextDelta)]
    return [TextDelta("".join(texts))] if texts else group
