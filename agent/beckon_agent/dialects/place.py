"""The reader's place in a Markdown answer.

It may be in a fence, in inline code, in a quote, or on a line of its own.
"""

import re
from typing import Final

_HEAD_LENGTH: Final = 256
"""Characters of a line that are looked at; a fence or a marker begins well before."""

_FENCE = re.compile(r"(?:[\s>*+|-]|\d{1,9}[.)]\s)*(?P<run>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_QUOTE_OR_TABLE = re.compile(r"\s*[>|]")
_LIST_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,9}[.)])\s")
_QUOTATION_MARKS: Final = frozenset("\"'“”„‟‘’‚«»‹›「」『』《》〈〉")

_CONTINUED: Final = frozenset(",;(-–—")


class Place:
    """Follows the text of an answer, piece by piece. The cut into pieces changes nothing."""

    def __init__(self) -> None:
        self.has_text = False
        """Whether there was anything but blanks."""
        self._head = ""
        self._column = 0
        self._last = ""
        self._last_letter = ""  # of this line, blanks left out
        self._fence = ""
        self._below_quote = False
        self._run = 0  # backticks in a row that have just been read
        self._span = 0  # how many backticks opened the inline code, 0 outside

    def advance(self, text: str) -> None:
        """Go over text."""
        first, *others = text.split("\n")
        self._advance_in_line(first)
        for line in others:
            self._end_line()
            self._advance_in_line(line)

    @property
    def begins_line(self) -> bool:
        """True at the start of a line. Blanks before the whole answer do not count."""
        return self._column == 0 or not self.has_text

    @property
    def in_fence(self) -> bool:
        """True within a code fence, or in its opening line."""
        return bool(self._fence or self._opening_fence())

    @property
    def in_sentence(self) -> bool:
        """True after words in a line without an end such as a full stop or a colon."""
        return self._last_letter.isalnum() or self._last_letter in _CONTINUED

    @property
    def after_blank(self) -> bool:
        """True after a blank within a line."""
        return self._last.isspace()

    @property
    def may_hold_call(self) -> bool:
        """True if a call may be written here. It may not in code, a quotation, a table or a list item."""
        return not (
            self.in_fence
            or self._in_span()
            or self._below_quote
            or self._last in _QUOTATION_MARKS
            or _QUOTE_OR_TABLE.match(self._head)
            or _LIST_ITEM.match(self._head)
        )

    def _advance_in_line(self, text: str) -> None:
        if not text:
            return
        self._head += text[: _HEAD_LENGTH - len(self._head)]
        self._column += len(text)
        self._last = text[-1]
        self._last_letter = text.rstrip()[-1:] or self._last_letter
        self.has_text = self.has_text or not text.isspace()
        if self._run or "`" in text:
            self._advance_in_code(text)

    def _advance_in_code(self, text: str) -> None:
        for part in filter(None, re.split("(`+)", text)):
            if part[0] == "`":
                self._run += len(part)
            else:
                self._end_run()

    def _end_run(self) -> None:
        self._span = self._in_span()
        self._run = 0

    def _in_span(self) -> int:
        """Return the number of backticks around the open inline code; 0 for none."""
        if not self._run:
            return self._span
        if self._span:
            return 0 if self._run == self._span else self._span
        return self._run

    def _opening_fence(self) -> str:
        match = _FENCE.match(self._head)
        if match is None or (match["run"][0] == "`" and "`" in match["info"]):
            return ""
        return match["run"]

    def _end_line(self) -> None:
        self._end_run()
        blank = not self._head.strip()
        run = self._opening_fence()
        if self._fence:
            line = self._head.strip(" \t\r>")
            if run.startswith(self._fence) and line == run:
                self._fence = ""
            self._span, self._below_quote = 0, False
        elif run:
            self._fence, self._span, self._below_quote = run, 0, False
        else:
            self._span = 0 if blank else self._span
            self._below_quote = not blank and bool(_QUOTE_OR_TABLE.match(self._head))
        self._head, self._column, self._last, self._last_letter = "", 0, "", ""
