"""Reading of an answer's bytes as JSON payloads, for any content type.

A line-wise reader of server-sent events rather than the `openai` package's: that one drops a last event
without a blank line after it, joins events that no blank line parts, and takes only events for an answer.
Some servers ignore `stream` and send one JSON body; it is recognised by its first line, since content types
are often wrong.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from typing import NamedTuple

import aiohttp

from beckon_agent.core.json_values import parse_json

MAX_BYTES = 64 * 1024 * 1024
"""More than any model can answer; beyond it the server is broken."""

_MAX_LINES = 1000
_DRAIN_SECONDS = 0.1
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The first line of an event stream: a known field, a comment, or an unknown field, which has no
# blank before its colon as the words of an error message have.
_EVENT_LINE = re.compile(rb"[ \t]*((data|event|id|retry)?:|(data|event|id|retry)\Z)")
_UNKNOWN_FIELD = re.compile(rb"[ \t]*[A-Za-z][\w.-]*:")
_LINE_END = re.compile(rb"\r\n|\n|\r")


class UnreadableAnswer(ValueError):
    """The answer is neither an event stream of JSON nor a JSON body."""


class Payload(NamedTuple):
    """One JSON value of an answer.

    `event` is the name of its event, empty for most; `text` is the text it was read from.
    """

    event: str
    data: object
    text: bytes = b""


async def read_payloads(
    chunks: AsyncIterator[bytes], whole: Callable[[], object] = lambda: None
) -> AsyncGenerator[Payload]:
    """Yield the payloads of a response body until `[DONE]` or its end.

    `whole` is called when the body is known to be complete: `[DONE]` came, or it is one JSON body. Raises
    `UnreadableAnswer`, and lets the errors of the transport through.
    """
    lines = _split_lines(chunks)
    reader: _EventReader | None = None
    async for raw in lines:
        line = raw.removeprefix(_BYTE_ORDER_MARK)
        if reader is None:
            if not line.strip():
                continue
            known = _EVENT_LINE.match(line) is not None
            if not (known or _UNKNOWN_FIELD.match(line)):
                yield await _read_body(line, lines)
                whole()
                return
            reader = _EventReader(b"" if known else line)
        payload = reader.feed(line)
        if payload:
            yield payload
        if reader.done:
            whole()
            await _drain_lines(lines)
            return
    if reader:
        reader.end()


class _EventReader:
    """Assembles the lines of one event stream into payloads."""

    def __init__(self, doubtful: bytes = b"") -> None:
        """Start a stream; `doubtful` is a first line of unclear meaning.

        Such a line may be the text of an error as well.
        """
        self.done = False
        self._doubtful = doubtful
        self._event = ""
        self._data: list[bytes] = []

    def feed(self, line: bytes) -> Payload | None:
        """Take one line without its end; return a completed payload, if any."""
        if not line:
            self.close()
            self._event = ""
            return None
        if line.startswith(b"{"):
            # A proxy that gives up in the middle may write its error without a frame.
            return self._complete_event(line)
        name, _, value = line.partition(b":")
        name, value = name.strip(), value.removeprefix(b" ")
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        content = value.strip()
        if name != b"data" or not content:
            return None
        if content == b"[DONE]":
            self.done = True
            return None
        return self._complete_event(value)

    def close(self) -> None:
        """End an event; raises `UnreadableAnswer` if its data was no JSON."""
        if self._data:
            raise UnreadableAnswer(_excerpt_of(b"\n".join(self._data)))

    def end(self) -> None:
        """End the stream.

        Raises `UnreadableAnswer` if it was no event stream, or broke off within an event.
        """
        self.close()
        if self._doubtful:
            raise UnreadableAnswer(_excerpt_of(self._doubtful))

    def _complete_event(self, value: bytes) -> Payload | None:
        # A payload is one line with every known server, so it is read at once;
        # only data that is no JSON yet waits for the lines after it.
        self._data.append(value)
        text = b"\n".join(self._data) if len(self._data) > 1 else value
        try:
            data = parse_json(text)
        except ValueError:
            if len(self._data) > _MAX_LINES:
                raise UnreadableAnswer("one event of more than a thousand lines") from None
            return None
        self._data, self._doubtful = [], b""
        return Payload(self._event, data, text)


async def _split_lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield lines without their ends; any of CR, LF and CRLF ends one."""
    pending = bytearray()
    size = 0
    after_cr = False
    async for chunk in chunks:
        if not chunk:
            continue  # it says nothing of what came before it
        size += len(chunk)
        if size > MAX_BYTES:
            raise UnreadableAnswer(f"an answer of more than {MAX_BYTES} bytes")
        start = 1 if after_cr and chunk.startswith(b"\n") else 0
        after_cr = chunk.endswith(b"\r")
        for end in _LINE_END.finditer(chunk, start):
            line = chunk[start : end.start()]
            start = end.end()
            if pending:
                line = bytes(pending) + line
                pending.clear()
            yield line
        pending += chunk[start:]
    if pending:
        yield bytes(pending)


async def _read_body(first: bytes, rest: AsyncIterator[bytes]) -> Payload:
    """Read the rest as one JSON body."""
    text = b"\n".join([first, *[line async for line in rest]])
    try:
        return Payload("", parse_json(text))
    except ValueError:
        raise UnreadableAnswer(_excerpt_of(text)) from None


async def _drain_lines(lines: AsyncIterator[bytes]) -> None:
    """Read the rest after `[DONE]`, for a short time. So the connection can serve again."""
    with suppress(TimeoutError, UnreadableAnswer, aiohttp.ClientError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in lines:
                pass


def _excerpt_of(data: bytes) -> str:
    return data[:300].decode("utf-8", "replace")
