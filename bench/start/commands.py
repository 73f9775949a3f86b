"""What is started: the command line, the modules that the services start with, and a question."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_QUESTION = "What is 17% of 2340?"
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Command:
    """A command, the arguments of Python for it, and the settings that it needs."""

    name: str
    arguments: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)


def _imports(name: str, module: str) -> Command:
    return Command(name, ("-c", f"import {module}"))


EMPTY = Command("python -c pass", ("-c", "pass"))
FASTAPI = Command("python -c 'import fastapi'", ("-c", "import fastapi"))

COMMANDS = (
    Command("beckon --help", ("-m", "beckon_cli", "--help")),
    Command("beckon ask --help", ("-m", "beckon_cli", "ask", "--help")),
    _imports("import: the HTTP of the agent", "beckon_agent.app"),
    _imports("import: agent", "beckon_agent.__main__"),
    _imports("import: operator", "beckon_operator.__main__"),
    _imports("import: adapter", "beckon_adapter.__main__"),
    _imports("import: broker", "beckon_broker.__main__"),
    _imports("import: a tool", "beckon_tools.__main__, beckon_tools.shipped.calculator"),
    _imports("import: demo model", "beckon_demo.__main__"),
    _imports("import: shim", "beckon_shim.__main__"),
)


def question(name: str, port: int) -> Command:
    """Return the command that asks one question, of the agent at this port or of a platform of its own."""
    return Command(name, ("-m", "beckon_cli", "ask", _QUESTION), {"BECKON_PORT": str(port)})


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this environment without settings of Beckon, but those given; bytecode may be written."""
    dropped = ("BECKON_", "OPENAI_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)} | dict(
        settings
    )


@contextlib.contextmanager
def platform(port: int) -> Iterator[None]:
    """Run the local platform with its agent at this port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "beckon_cli", "up"],
        env=environment({"BECKON_PORT": str(port)}),
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_ready(process, f"http://127.0.0.1:{port}/readyz")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(urllib.error.URLError, OSError), urllib.request.urlopen(url, timeout=2):  # noqa: S310  # an address of our own
            return
        time.sleep(0.1)
    raise RuntimeError("the local platform did not start; its message stands above")


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
