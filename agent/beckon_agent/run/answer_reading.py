"""The reading of one answer's text: the text to show, and the calls in it."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from beckon_agent.core.json_values import to_json
from beckon_agent.core.model_types import (
    AnswerDetails,
    Declaration,
    Logprobs,
    Message,
    RefusalReason,
    RefusedCall,
    ToolCall,
)
from beckon_agent.core.run_events import TextDelta
from beckon_agent.dialects.base import Item, RawCall, Reader
from beckon_agent.dialects.constrained import ObjectReader
from beckon_agent.dialects.provenance import Provenance

logger = logging.getLogger(__name__)

_NOTED_REFUSALS = 20
_SEARCHED_AT_ONCE = 30_000  # characters of a request's JSON, about 10 ms


class AnswerReading:
    """The findings of a reader so far: the shown text and the calls.

    With `in_thread`, the reader may take long, and works in a thread beside the event loop.
    """

    def __init__(self, reader: Reader, *, in_thread: bool) -> None:
        self._reader = reader
        self._in_thread = in_thread
        self.calls: list[ToolCall] = []
        self._texts: list[str] = []
        self._held: Logprobs = ()
        self._logprobs: Logprobs = ()

    @property
    def text(self) -> str:
        """The text shown so far."""
        return "".join(self._texts)

    @property
    def keeps_format(self) -> bool | None:
        """Whether a constrained answer keeps to its schema; `None` until that shows."""
        return self._reader.keeps_format if isinstance(self._reader, ObjectReader) else None

    async def feed(self, text: str, logprobs: Logprobs) -> list[TextDelta]:
        """Read the next piece of the answer; return the text to show, with its log probabilities."""
        self._held += logprobs
        if self._in_thread:
            return self._take_items(await asyncio.to_thread(self._reader.feed, text))
        return self._take_items(self._reader.feed(text))

    async def finish(self, *, called: bool) -> list[TextDelta]:
        """Read the end of the answer; return the text to show.

        `called` is True if the server sent calls of its own.
        """
        if self._in_thread:
            return self._take_items(await asyncio.to_thread(self._reader.finish, called=called))
        return self._take_items(self._reader.finish(called=called))

    def _take_items(self, items: Sequence[Item]) -> list[TextDelta]:
        shown: list[TextDelta] = []
        for item in items:
            if isinstance(item, ToolCall):
                self.calls.append(item)
            elif item.text:
                shown.append(item)
                self._texts.append(item.text)
        if self._held and items:
            held, self._held = self._held, ()
            if shown and len(shown) == len(items):  # else the tokens are those of a call as well
                shown[0] = TextDelta(shown[0].text, held)
                self._logprobs += held
        return shown

    def complete_details(self, details: AnswerDetails) -> AnswerDetails:
        """Return the details of the answer, with the log probabilities of the shown text."""
        return details if details.logprobs == self._logprobs else replace(details, logprobs=self._logprobs)


class TextCallFilter:
    """The filter for calls read from text; `refused` are the refused ones."""

    def __init__(self, messages: Sequence[Message], declarations: Sequence[Declaration]) -> None:
        self.refused: list[RefusedCall] = []
        self._offered = {str(tool.get("function", tool).get("name")) for tool in declarations}
        self._request = messages, declarations
        self._provenance = Provenance(messages, declarations)

    @property
    def is_slow(self) -> bool:
        """True if `allow_calls` may take more than a few milliseconds."""
        # Written at once: to visit each value of twenty declarations would take a millisecond.
        return len(to_json(self._request)) > _SEARCHED_AT_ONCE

    def allow_calls(self, calls: Sequence[RawCall], markup: str) -> bool:
        """True if all of these calls may be made.

        Their tools must be offered, and the calls must not come from the conversation.
        """
        unknown = [call for call in calls if call.name not in self._offered]
        if unknown:
            return self._refuse_calls(unknown, "not_offered")
        if self._provenance.contains_calls(calls, markup):
            return self._refuse_calls(calls, "brought_along")
        return True

    def _refuse_calls(self, calls: Sequence[RawCall], reason: RefusalReason) -> bool:
        for call in calls[:_NOTED_REFUSALS]:
            name = call.name if call.name in self._offered else ""
            logger.warning(
                "a call of %s in the text of an answer stays text: %s", name or "(unknown)", reason
            )
            self.refused.append(RefusedCall(name, reason))
        return False
