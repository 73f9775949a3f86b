"""PID 1 of a container: it reaps orphans and forwards signals.

An MCP server may start many helper processes, and leave them behind.
"""

import os
import signal
import sys
from types import FrameType

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def be_init() -> None:
    """Act as init if this process is PID 1.

    The program then continues in a child process. This one reaps orphans, forwards signals, and exits
    with the child's exit code.

    Returns in the child, or at once if this process is not PID 1.
    """
    if os.getpid() != 1:
        return
    # Until there is a child to hand them to, signals wait.
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
        return

    def hand_on(number: int, _frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in _FORWARDED:
        signal.signal(number, hand_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            sys.stderr.flush()
            os._exit(code if code >= 0 else 128 - code)
