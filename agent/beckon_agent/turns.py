"""One answer of the model, in whichever dialect it speaks."""

import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

from beckon_agent.dialects.base import Dialect, Reader
from beckon_agent.dialects.registry import dialect, guess
from beckon_agent.model.client import ModelClient
from beckon_agent.model.errors import ToolsNotSupported
from beckon_agent.model.history import repair
from beckon_agent.model.types import (
    Declaration,
    Message,
    ModelRequest,
    StreamItem,
    TextDelta,
    ToolCall,
    Turn,
)

logger = logging.getLogger(__name__)


class Model:
    """A model with the dialect it speaks.

    With `auto` it begins with native tool calling, and falls back for good when
    the server says that it has no tools (vllm#30613, ollama's "does not support tools").
    """

    def __init__(self, client: ModelClient, dialect_name: str) -> None:
        self._client = client
        self._auto = dialect_name == "auto"
        self._dialect = dialect("native" if self._auto else dialect_name)

    @property
    def dialect(self) -> str:
        """The name of the dialect in use."""
        return self._dialect.name

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Declaration]
    ) -> AsyncIterator[StreamItem]:
        """Yield the pieces of one answer; the last item is the whole `Turn`."""
        try:
            async for item in self._speak(self._dialect, messages, tools):
                yield item
        except ToolsNotSupported as error:
            if not self._auto or not self._dialect.native:
                raise
            self._dialect = guess(self._client.model)
            logger.warning("the model server takes no tools (%s); from now on: %s", error, self._dialect.name)
            async for item in self._speak(self._dialect, messages, tools):
                yield item

    async def _speak(
        self, spoken: Dialect, messages: Sequence[Message], tools: Sequence[Declaration]
    ) -> AsyncIterator[StreamItem]:
        rendered = spoken.render(repair(messages, self._client.profile), tools)
        request = ModelRequest(messages=rendered.messages, tools=rendered.tools, stop=rendered.stop)
        reader = spoken.reader(tools)
        read = _Read(reader)
        async for item in self._client.stream(request):
            match item:
                case TextDelta(text):
                    for piece in read.take(reader.feed(text)):
                        yield piece
                case ToolCall():
                    pass  # they stand in the Turn
                case Turn():
                    for piece in read.take(reader.finish()):
                        yield piece
                    yield replace(item, text=read.text, calls=(*item.calls, *read.calls))
                case _:
                    yield item


class _Read:
    """What a reader has found so far: the text that was shown, and the calls."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.text = ""
        self.calls: list[ToolCall] = []

    def take(self, pieces: Sequence[TextDelta | ToolCall]) -> list[TextDelta]:
        """Keep what was read; return what is to be shown."""
        shown = [piece for piece in pieces if isinstance(piece, TextDelta)]
        self.text += "".join(piece.text for piece in shown)
        self.calls.extend(piece for piece in pieces if isinstance(piece, ToolCall))
        return shown
