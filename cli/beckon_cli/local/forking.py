"""Services forked from this process, which has imported their modules once for all of them.

The imports of the services take most of the time of a start, and most of their memory. A forked service
shares both. It is a process of its own in all else: session, environment, signals and open files.
"""

import contextlib
import ctypes
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

_SET_PARENT_DEATH_SIGNAL, _SET_NAME = 1, 15  # PR_SET_PDEATHSIG and PR_SET_NAME, prctl(2)
_LONGEST_NAME = 15
_ARGUMENTS = slice(45, 47)  # arg_start and arg_end in /proc/PID/stat, counted from the state


class ForkedProcess:
    """A process forked from this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._status: int | None = None

    def wait(self) -> int:
        """Wait for its end; return its exit status, negative for a signal."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


def can_fork() -> bool:
    """Return True on Linux while this process has one thread.

    A fork copies one thread alone, and a lock held by another would stay locked for ever.
    """
    return sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1  # noqa: PTH208  # names only


def import_services(modules: Iterable[str]) -> None:
    """Import services, and exempt what they hold from garbage collection.

    A collection would write to each object, and so copy the memory shared by the forked processes.
    """
    gc.disable()
    for module in modules:
        importlib.import_module(f"{module}.__main__")
    gc.freeze()
    gc.enable()


def fork_module(module: str, environment: Mapping[str, str]) -> ForkedProcess:
    """Start `python -m module` as a fork of this process; return when it is a process of its own."""
    sys.stdout.flush()  # else what is buffered here would be written there, too
    sys.stderr.flush()
    parent = os.getpid()
    started, writer = os.pipe()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid == 0:
        _run(module, environment, parent, blocked)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    os.close(writer)
    os.read(started, 1)  # ends when the child has closed its inherited files
    os.close(started)
    return ForkedProcess(pid)


def _run(
    module: str, environment: Mapping[str, str], parent: int, unblocked: Iterable[signal.Signals | int]
) -> NoReturn:
    """Become the service: session, signals, files, environment and name; run it; end as Python does."""
    status = 1
    try:
        os.setsid()
        libc = ctypes.CDLL(None)
        libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
        _reset_signals()
        with open(os.devnull) as nothing:  # noqa: PTH123  # a descriptor is all that is needed
            os.dup2(nothing.fileno(), 0)
        _close_inherited()
        signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = [module]
        _show_as(libc, module)
        if os.getppid() == parent:  # else it was killed before the kernel knew what to do then
            status = importlib.import_module(f"{module}.__main__").main()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _reset_signals() -> None:
    """Undo the handlers of this process's event loop; ignored signals stay ignored."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _close_inherited() -> None:
    """Close all files but the standard streams: sockets and pipes of this process's event loop."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  # names only
        if int(name) > 2:
            with contextlib.suppress(OSError):  # that of the listing itself
                os.close(int(name))


def _show_as(libc: ctypes.CDLL, module: str) -> None:
    """Write the command over the inherited one, which the lists of processes show."""
    libc.prctl(_SET_NAME, module.encode()[:_LONGEST_NAME])
    fields = Path("/proc/self/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    begin, end = map(int, fields[_ARGUMENTS])
    command = "\0".join(("python", "-m", module)).encode()
    if len(command) < end - begin:
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, command, len(command))
