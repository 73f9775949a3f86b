"""`beckon chat` on a terminal: it streams, and Ctrl-C ends the answer first, the conversation second."""

import os
import pty
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.agent.scripted_model import Reply, chunk, says, sse
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform, clean_environment
from tests.e2e.model_thread import model_thread
from tests.e2e.terminal import Terminal

LEFT, UP = b"\x1b[D", b"\x1b[A"
PROMPT = "you>"  # the space after it is a move of the cursor


@contextmanager
def terminal_chat(platform: LocalPlatform) -> Iterator[tuple[int, Terminal]]:
    """Run `beckon chat` on a terminal; yields its process id and the terminal."""
    environment = clean_environment({"BECKON_PORT": str(platform.port), "TERM": "xterm"})
    pid, terminal = pty.fork()
    if pid == 0:
        beckon = str(Path(sys.executable).parent / "beckon")
        os.execvpe(beckon, [beckon, "chat"], environment)
    try:
        yield pid, Terminal(terminal)
    finally:
        os.close(terminal)


def test_an_answer_streams_and_ctrl_c_ends_it_and_then_the_chat(
    start_platform: Start, tmp_path: Path
) -> None:
    with model_thread() as model:
        platform = start_platform(tmp_path, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="m")
        pieces = [sse(chunk({"content": "first words"}), done=False), b""]
        model.play(Reply(pieces, holds=model.never), says("second answer"))
        with terminal_chat(platform) as (pid, terminal):
            terminal.read_until(PROMPT, 20)
            terminal.type(b"hello\n")
            terminal.read_until("first words", 20)
            terminal.type(b"\x03")
            terminal.read_until("interrupted", 20)
            terminal.read_until(PROMPT, 20)
            terminal.type(b"again\n")
            terminal.read_until("second answer", 20)
            terminal.read_until(PROMPT, 20)
            terminal.type(b"\x03")
            _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 130


def test_a_line_is_edited_and_recalled_and_typed_ahead_text_waits_for_the_next_prompt(
    start_platform: Start, tmp_path: Path
) -> None:
    with model_thread() as model:
        platform = start_platform(tmp_path, OPENAI_BASE_URL=model.base_url, BECKON_MODEL="m")
        pieces = [sse(chunk({"content": "first words"}), done=False), b""]
        model.play(Reply(pieces, holds=model.never), says("second answer"), says("third answer"))
        with terminal_chat(platform) as (pid, terminal):
            terminal.read_until(PROMPT, 20)
            terminal.type(b"helo" + LEFT + b"l\r")
            terminal.read_until("first words", 20)
            terminal.type("an \u00e9clair\r".encode())
            terminal.type(b"\x03")
            between = terminal.read_until("interrupted", 20)
            terminal.read_until(PROMPT, 20)
            terminal.read_until("second answer", 20)
            terminal.read_until(PROMPT, 20)
            terminal.type(UP + UP + b"\r")
            terminal.read_until("third answer", 20)
            questions = [body["messages"][-1]["content"] for body in model.bodies]
            terminal.type(b"\x04")
            _, status = os.waitpid(pid, 0)

    assert questions == ["hello", "an \u00e9clair", "hello"]
    assert "clair" not in between
    assert os.waitstatus_to_exitcode(status) == 0
