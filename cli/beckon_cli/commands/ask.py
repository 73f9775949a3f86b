"""`beckon ask` and `beckon chat`: questions, answers, and the tool calls between them."""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, NamedTuple

from rich.text import Text

from beckon_cli.client import AgentClient, Message, StoredAnswer, document_of
from beckon_cli.errors import CommandError
from beckon_cli.local.session import agent_session, find_agent
from beckon_cli.output import (
    call_text,
    compact_json,
    err,
    out,
    print_incomplete,
    print_json,
    report_text,
    write_text,
)
from beckon_cli.settings import Settings, load_settings

_HELP = """\
/new    begin a new conversation
/help   show this list
/quit   end; so does Ctrl-D
Arrow keys edit the line and recall earlier ones. What you type during an answer appears at the next prompt.
Ctrl-C interrupts an answer; without an answer in progress it ends the conversation."""


def ask(*question: str, agent: str = "", url: str = "", stored: bool = False, json: bool = False) -> None:
    """Ask one question; print the answer and its tool calls.

    Starts the platform for this question if none is running.

    Parameters
    ----------
    question
        The question, in quotes or not.
    agent
        The name of an agent; else the first one.
    url
        The URL of an agent elsewhere, with its key in BECKON_API_KEY; else the one on this machine.
    stored
        Keep the run: it survives a restart of the agent, and a call may wait for a person's approval.
    json
        Print one JSON document: question, answer, calls, and whether the answer is incomplete.
    """
    entered = " ".join(question).strip()
    if not entered:
        raise CommandError('no question; write: beckon ask "What is 17% of 2340?"', status=2)
    answering = _ask_stored if stored else _ask_once
    asyncio.run(answering(load_settings(), _Target(agent, url), entered, as_json=json))


def chat(*, agent: str = "", url: str = "") -> None:
    """Chat with the agent on the terminal; answers are streamed.

    Parameters
    ----------
    agent
        The name of an agent; else the first one.
    url
        The URL of an agent elsewhere, with its key in BECKON_API_KEY or typed; else the one on this machine.
    """
    try:
        asyncio.run(_chat(load_settings(), _Target(agent, url)))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


class _Target(NamedTuple):
    """The agent that a command names; each part may be empty."""

    agent: str
    url: str


async def _ask_once(settings: Settings, target: _Target, question: str, *, as_json: bool) -> None:
    async with agent_session(settings, target.url) as client:
        agent = await find_agent(client, target.agent)
        answer = await _answer(
            client.stream_chat(agent, [{"role": "user", "content": question}]), quiet=as_json
        )
    if as_json:
        print_json(
            {
                "question": question,
                "answer": answer.text,
                "incomplete": answer.incomplete,
                "calls": answer.calls,
            }
        )


async def _ask_stored(settings: Settings, target: _Target, question: str, *, as_json: bool) -> None:
    async with agent_session(settings, target.url) as client:
        agent = await find_agent(client, target.agent)
        with err.status("waiting for the agent …"):
            answer = StoredAnswer(await client.create_response({"model": agent, "input": question}))
    if as_json:
        print_json({"question": question, **document_of(answer)})
    else:
        answer.show()


async def _chat(settings: Settings, target: _Target) -> None:
    async with agent_session(settings, target.url) as client:
        conversation = _Conversation(client, await find_agent(client, target.agent))
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, conversation.interrupt)
        err.print(
            "A conversation with the agent; /help shows the commands, /quit or Ctrl-D ends it.", style="dim"
        )
        async with contextlib.aclosing(read_lines("you> ")) as lines:
            async for line in lines:
                if line == "/quit":
                    return
                if line == "/new":
                    conversation.messages.clear()
                elif line == "/help":
                    err.print(_HELP, style="dim")
                else:
                    await conversation.say(line)


class _Conversation:
    """The messages of a conversation so far.

    A turn that fails or is interrupted leaves no trace.
    """

    def __init__(self, client: AgentClient, agent: str) -> None:
        self.messages: list[Message] = []
        self._client = client
        self._agent = agent
        self._holder = asyncio.current_task()
        self._answering: asyncio.Task[_ShownAnswer] | None = None

    async def say(self, line: str) -> None:
        """Send one line to the agent and show the answer."""
        entered: list[Message] = [*self.messages, {"role": "user", "content": line}]
        self._answering = asyncio.create_task(
            _answer(self._client.stream_chat(self._agent, entered), quiet=False)
        )
        try:
            answer = await self._answering
        except CommandError as error:
            err.print(Text(str(error), style="red"))
        except asyncio.CancelledError:
            if not self._answering.cancelled():
                raise
            err.print("\ninterrupted", style="dim")
        else:
            self.messages = [*entered, {"role": "assistant", "content": answer.text}]
        finally:
            self._answering = None

    def interrupt(self) -> None:
        """Cancel the answer in progress, else the conversation."""
        if self._answering is not None:
            self._answering.cancel()
        elif self._holder is not None:
            self._holder.cancel()


_CUT = frozenset({"length", "content_filter"})  # finish reasons of an incomplete answer


def _delta_text(choice: dict[str, Any]) -> str:
    delta = choice.get("delta", {})
    return delta.get("content") or delta.get("refusal") or ""


class _ShownAnswer:
    """A streamed answer: its text and its tool calls."""

    def __init__(self, *, quiet: bool) -> None:
        self.text = ""
        self.incomplete = False
        self.calls: list[dict[str, Any]] = []
        self._quiet = quiet
        self._begun: dict[str, dict[str, Any]] = {}

    def shows(self, chunk: dict[str, Any]) -> bool:
        """Return True if a chunk has permanent output: text or a call."""
        return bool(chunk.get("beckon")) or any(map(_delta_text, chunk.get("choices") or []))

    def take(self, chunk: dict[str, Any]) -> None:
        """Read one chunk, and show it unless quiet."""
        if event := chunk.get("beckon"):
            self._take_call(event)
        for choice in chunk.get("choices") or []:
            self._show_text(_delta_text(choice))
            if choice.get("finish_reason") in _CUT:
                self.incomplete = True

    def _show_text(self, text: str) -> None:
        self.text += text
        if not self._quiet:
            write_text(text)

    def _take_call(self, event: dict[str, Any]) -> None:
        if event["type"] == "call.started":
            self._begun[event["id"]] = event
            self._show(f"→ {call_text(event['name'], event['arguments'])}", "cyan")
            return
        call = self._begun.get(event["id"], {})
        self.calls.append(
            {
                "name": event["name"],
                "arguments": call.get("arguments"),
                "failed": event["failed"],
                "result": event["result"],
                "seconds": event["seconds"],
            }
        )
        style = "red" if event["failed"] else "green"
        self._show(f"← {event['name']}: {compact_json(event['result'])} ({event['seconds']:.2f} s)", style)

    def _show(self, line: str, style: str) -> None:
        if not self._quiet:
            if self.text and not self.text.endswith("\n"):
                sys.stdout.write("\n")
            out.print(Text(line, style=style))


async def _answer(chunks: AsyncIterator[dict[str, Any]], *, quiet: bool) -> _ShownAnswer:
    answer = _ShownAnswer(quiet=quiet)
    with err.status("waiting for the model …") as waiting:
        async for chunk in chunks:
            event = chunk.get("beckon") or {}
            if event.get("type") == "call.progressed":
                waiting.update(Text(report_text(event["name"], event)))
                waiting.start()
                continue
            if answer.shows(chunk):
                waiting.stop()
            answer.take(chunk)
    if not quiet:
        sys.stdout.write("\n")
        sys.stdout.flush()
        if answer.incomplete:
            print_incomplete()
    return answer


def read_lines(prompt: str) -> AsyncGenerator[str]:
    """Yield the non-blank lines of standard input; on a terminal they can be edited and recalled.

    Raises `asyncio.CancelledError` for Ctrl-C at the prompt.
    """
    return _edited_lines(prompt) if sys.stdin.isatty() and sys.stdout.isatty() else _plain_lines()


async def _edited_lines(prompt: str) -> AsyncGenerator[str]:
    # Imported late: a tenth of a second, for a conversation on a terminal alone.
    from prompt_toolkit import PromptSession  # noqa: PLC0415  # see above
    from prompt_toolkit.data_structures import Size  # noqa: PLC0415  # see above
    from prompt_toolkit.output.vt100 import Vt100_Output  # noqa: PLC0415  # see above

    def read_size() -> Size:
        columns, rows = shutil.get_terminal_size()
        return Size(rows, columns)

    # The position of the cursor is not requested: the terminal's answer would be among the typed keys.
    output = Vt100_Output(sys.stdout, read_size, term=os.environ.get("TERM"), enable_cpr=False)
    session: PromptSession[str] = PromptSession(prompt, output=output)
    with _hide_typing():
        while True:
            try:
                line = await session.prompt_async(handle_sigint=False)
            except EOFError:
                return
            except KeyboardInterrupt:
                raise asyncio.CancelledError from None
            if line := line.strip():
                yield line


@contextlib.contextmanager
def _hide_typing() -> Iterator[None]:
    """Show no keys between two prompts: what is typed during an answer appears at the next prompt."""
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    quiet = termios.tcgetattr(keyboard)
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    quiet[3] |= termios.NOFLSH  # Ctrl-C ends an answer, and drops nothing of what was typed
    termios.tcsetattr(keyboard, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSANOW, before)


async def _plain_lines() -> AsyncGenerator[str]:
    """Yield the lines of a pipe or a file.

    A thread of its own reads: the program may end while it waits for a line, which is not allowed for the
    threads of the event loop.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[str | None] = asyncio.Queue()
    wanted = threading.Semaphore(0)

    def read() -> None:
        while True:
            wanted.acquire()
            line = sys.stdin.readline()
            loop.call_soon_threadsafe(lines.put_nowait, line or None)
            if not line:
                return

    threading.Thread(target=read, name="keyboard", daemon=True).start()
    while True:
        wanted.release()
        line = await lines.get()
        if line is None:
            return
        if line := line.strip():
            yield line
