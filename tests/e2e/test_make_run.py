"""`make run` on a terminal: Ctrl-C stops all of it, and `make` ends with 0."""

import os
import pty

from tests.e2e.local_platform import ROOT, clean_environment, descendants, is_running, port_range
from tests.e2e.terminal import Terminal
from tests.patience import wait_until


def test_ctrl_c_on_a_terminal_stops_make_run_with_zero() -> None:
    environment = clean_environment({"BECKON_PORT": str(port_range()), "TERM": "xterm"})
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execvpe("make", ["make", "run"], environment)
    try:
        screen = Terminal(terminal)
        shown = screen.read_until("Ctrl-C stops all of it.", 60)
        children = descendants(pid)

        screen.type(b"\x03")
        screen.read_until("stopped", 30)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal)

    assert os.waitstatus_to_exitcode(status) == 0
    assert "the demo model: a stand-in" in shown
    assert len(children) == 7
    wait_until(lambda: not [child for child in children if is_running(child)])
