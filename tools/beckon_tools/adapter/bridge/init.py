"""The first process of a container buries what its children leave behind: a server's helpers are many."""

import os
import signal
import sys
from types import FrameType

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def be_init() -> None:
    """Go on in a child where this process is the first, which stays to bury orphans and to hand on signals.

    Returns in the child, or at once where this process is not the first.
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
