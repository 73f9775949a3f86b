"""Ctrl-C for this process alone, where `make` started it.

The terminal sends Ctrl-C to the whole foreground process group. `make` in that group
would end with status 130 however well everything was stopped, so `beckon` takes the
foreground for a group of its own, as a shell does for its jobs, and gives it back.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def foreground_of_our_own() -> Iterator[None]:
    """Hold the terminal's foreground, if `make` and a terminal are there; else do nothing."""
    if "MAKELEVEL" not in os.environ or not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = os.tcgetpgrp(terminal)
    # The one who is not in the foreground may not change it, unless it does not listen. And
    # nobody would wake us from Ctrl-Z: the shell waits for `make`.
    for number in (signal.SIGTTOU, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(terminal, os.getpgrp())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the terminal may be gone
            os.tcsetpgrp(terminal, before)
