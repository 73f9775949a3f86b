"""Commands and services of Beckon as processes that need not import it anew: forked from one that has.

An import of the command line costs a second of processor time, one of the agent two, and the tests start
them hundreds of times. A command that is run here is a process of its own all the same, with arguments,
environment, folder and streams of its own. The tests of the docs' examples, of `make run` and of the wheels
prove that it starts alone.
"""

import array
import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

IMPORTS_LATE = ("beckon_cli", "beckon_tools")
"""Commands that import what a verb needs when it is typed; a service imports all that it needs."""
NOT_IMPORTED = (".templates", ".__main__")
ALSO_IMPORTED = {
    "beckon_agent": (
        "beckon_agent.store.sql.postgresql",
        "beckon_agent.store.sql.sqlite",
        "uvicorn.lifespan.on",
        "uvicorn.protocols.http.httptools_impl",
    )
}
"""What a service imports only once it has its settings."""
ROOT = Path(__file__).resolve().parents[1]


def run_module(
    module: str,
    *words: str,
    env: Mapping[str, str],
    cwd: Path | None = None,
    given: str = "",
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run `python -m module words` to its end, as `subprocess.run` does."""
    process = ModuleProcess(module, *words, env=env, cwd=cwd, given=given)
    try:
        status = process.wait(timeout)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout)  # closes what it holds
        raise
    return subprocess.CompletedProcess([module, *words], status, process.output(), process.errors())


class ModuleProcess:
    """`python -m module words`, which runs; with the methods of `subprocess.Popen` that the tests need.

    `output` is a file for both streams, which is closed when the process ends. The process is forked from
    one that has imported the modules `imported` as well.
    """

    def __init__(
        self,
        module: str,
        *words: str,
        env: Mapping[str, str],
        cwd: Path | None = None,
        given: str = "",
        output: BinaryIO | None = None,
        imported: tuple[str, ...] = (),
    ) -> None:
        self._command = [module, *words]
        self._output = output or tempfile.TemporaryFile()  # noqa: SIM115 - read later
        self._errors = output or tempfile.TemporaryFile()  # noqa: SIM115 - read later
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._connection.connect(_server_address(module, imported))
        with _stdin(given) as stdin:
            streams = array.array("i", [one.fileno() for one in (stdin, self._output, self._errors)])
            self._connection.sendmsg([b"\0"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)])
        request = {"module": module, "words": words, "env": dict(env), "cwd": str(cwd or Path.cwd())}
        self._connection.sendall(json.dumps(request).encode())
        self._connection.shutdown(socket.SHUT_WR)
        self._answer = self._connection.makefile("rb", buffering=0)
        self.pid = int(self._answer.readline())
        self.returncode: int | None = None
        self._texts = "", ""

    def poll(self) -> int | None:
        """Return the exit status, `None` while the process runs."""
        return self._take_status(0)

    def wait(self, timeout: float) -> int:
        """Return the exit status; raise `subprocess.TimeoutExpired` after some seconds."""
        status = self._take_status(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self._command, timeout)
        return status

    def _take_status(self, seconds: float) -> int | None:
        if self.returncode is None and self._has_ended(seconds):
            self.returncode = int(self._answer.readline())
            self._texts = _text(self._output), _text(self._errors)
            for each in (self._answer, self._connection, self._output, self._errors):
                each.close()
        return self.returncode

    def _has_ended(self, seconds: float) -> bool:
        # Not `select.select`, which takes no descriptor above 1023: some tests have more connections.
        answer = select.poll()
        answer.register(self._connection, select.POLLIN)
        return bool(answer.poll(seconds * 1000))

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self.send_signal(signal.SIGKILL)

    def output(self) -> str:
        """Return what the process has written to its standard output."""
        return self._texts[0] if self.poll() is not None else _text(self._output)

    def errors(self) -> str:
        """Return what the process has written to its standard error."""
        return self._texts[1] if self.poll() is not None else _text(self._errors)


def _stdin(given: str) -> BinaryIO:
    """Return a file with a text, to be read as standard input."""
    if not given:
        return Path(os.devnull).open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    file.write(given.encode())
    file.seek(0)
    return file


def _text(file: BinaryIO) -> str:
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


@functools.cache
def _server_address(module: str, imported: tuple[str, ...]) -> str:
    """Start the server of a module for this process of pytest; return its address."""
    folder = tempfile.TemporaryDirectory(prefix="beckon-commands-", ignore_cleanup_errors=True)
    address = f"{folder.name}/socket"
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.command_server", module, address, *imported],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("BECKON_")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdin
    assert server.stdout

    def stop() -> None:
        server.communicate()  # the end of its input is the end of the server
        folder.cleanup()

    atexit.register(stop)
    assert server.stdout.readline() == b"ready\n"
    return address


def _serve(module: str, address: str, *imported: str) -> None:
    """Fork a process for each connection, until the input ends."""
    if module in IMPORTS_LATE:
        _import_all(module)
    else:
        for name in (f"{module}.__main__", *ALSO_IMPORTED.get(module, ())):
            importlib.import_module(name)
    for name in imported:
        importlib.import_module(name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(64)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            _reap()
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _supervise(connection)
            connection.close()


def _import_all(package: str) -> None:
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not any(part in module.name for part in NOT_IMPORTED):
            importlib.import_module(module.name)


def _reap() -> None:
    """Wait for children that ended: their processor time counts as that of the tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _supervise(connection: socket.socket) -> NoReturn:
    """Run one command in a child; report its process id, then its exit status."""
    _, ancillary, *_ = connection.recvmsg(1, socket.CMSG_SPACE(12))
    streams = array.array("i", ancillary[0][2])
    with connection.makefile("rb") as given:
        request = json.loads(given.read())
    pid = os.fork()
    if pid == 0:
        connection.close()
        _run(request, streams)
    connection.sendall(f"{pid}\n".encode())
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    connection.sendall(f"{status}\n".encode())
    os._exit(0)


def _run(request: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Become the command: its streams, folder, environment and arguments; run it; end as Python does."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0] = request["cwd"]
    sys.path[1:1] = [path for path in request["env"].get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.argv = [request["module"], *request["words"]]
    sys.modules.pop(f"{request['module']}.__main__", None)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - a stream, as Python's own
    buffering = 1 if "PYTHONUNBUFFERED" in request["env"] else -1
    sys.stdout = open(1, "w", buffering, closefd=False)  # noqa: SIM115 - a stream, as Python's own
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115 - as Python's own
    status = 0
    try:
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    except SystemExit as exit_:
        status = _exit_status(exit_.code)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined] # Python waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _exit_status(code: str | int | None) -> int:
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
        return 1
    return code or 0


if __name__ == "__main__":
    _serve(*sys.argv[1:])
