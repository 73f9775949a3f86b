"""What is started: the command line, the modules that the services start with, and a question."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_QUESTION = "What is 17% of 2340?"


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
    """Return the command for one question, to the agent at this port or to a platform of its own."""
    return Command(name, ("-m", "beckon_cli", "ask", _QUESTION), {"BECKON_PORT": str(port)})


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this environment without settings of Beckon, but those given; bytecode may be written."""
    dropped = ("BECKON_", "OPENAI_", "PYTHONDONTWRITEBYTECODE")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)} | dict(
        settings
    )


@contextlib.contextmanager
def platform(port: int) -> Iterator[None]:
    """Run the local platform with its agent at this port; it is ready when the block begins."""
    command = [sys.executable, "-m", "beckon_cli", "up"]
    with subprocess.Popen(
        command, env=environment({"BECKON_PORT": str(port)}), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            if not any("Ctrl-C stops" in line for line in process.stdout or ()):
                raise RuntimeError("the local platform did not start; its message is above")
            yield
        finally:
            process.send_signal(signal.SIGTERM)


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
