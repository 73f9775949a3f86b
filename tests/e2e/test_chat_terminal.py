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
from tests.e2e.test_make_run import read_until


@contextmanager
def terminal_chat(platform: LocalPlatform) -> Iterator[tuple[int, int]]:
    """Run `beckon chat` on a terminal; yields its process id and the terminal."""
    environment = clean_environment({"BECKON_PORT": str(platform.port), "TERM": "xterm"})
    pid, terminal = pty.fork()
    if pid == 0:
        beckon = str(Path(sys.executable).parent / "beckon")
        os.execvpe(beckon, [beckon, "chat"], environment)
    try:
        yield pid, terminal
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
            read_until(terminal, "you> ", 20)
            os.write(terminal, b"hello\n")
            read_until(terminal, "first words", 20)
            os.write(terminal, b"\x03")
            read_until(terminal, "interrupted", 20)
            read_until(terminal, "you> ", 20)
            os.write(terminal, b"again\n")
            read_until(terminal, "second answer", 20)
            read_until(terminal, "you> ", 20)
            os.write(terminal, b"\x03")
            _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 130
