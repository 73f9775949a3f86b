"""What a command of `beckon` loads: its own module, and nothing that only others need."""

import inspect
import subprocess
import sys
from collections.abc import Sequence

import pytest
from cyclopts import App

from beckon_cli.entry import app

# What the services are made of: no client needs it.
OF_SERVICES = {
    "aiohttp",
    "alembic",
    "beckon_agent",
    "beckon_broker",
    "beckon_shim",
    "fastapi",
    "kubernetes",
    "mcp",
    "openai",
    "opentelemetry",
    "prometheus_client",
    "sqlalchemy",
    "starlette",
    "uvicorn",
}
# What the help alone does not need either.
OF_COMMANDS = OF_SERVICES | {
    "asyncio",
    "beckon_contract",
    "beckon_tools",
    "httpx",
    "prompt_toolkit",
    "pydantic",
    "yaml",
}
COMMANDS = sorted(name for name in app if not name.startswith("-"))


def loaded_by(code: str, *words: str) -> set[str]:
    """Return the names of the top-level modules that are there after this code."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    whole = f"import atexit; atexit.register(exec, {report!r}, {{}}); {code}"
    done = subprocess.run([sys.executable, "-c", whole, *words], capture_output=True, text=True, check=True)
    found = set(done.stderr.split())
    assert "sys" in found
    return found


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_the_list_of_commands_loads_none_of_them(words: Sequence[str]) -> None:
    assert loaded_by("from beckon_cli.__main__ import main; main()", *words) & OF_COMMANDS == set()


@pytest.mark.parametrize("command", ["ask", "chat", "runs", "approve"])
def test_a_client_of_the_agent_loads_nothing_of_the_services(command: str) -> None:
    found = loaded_by("from beckon_cli.__main__ import main; main()", command, "--help")

    assert "httpx" in found
    assert found & (OF_SERVICES | {"prompt_toolkit"}) == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_help_of_each_says(name: str) -> None:
    command: App = app[name]
    function = command.default_command
    written = inspect.getdoc(function) if function else command.help

    assert written is not None
    assert command.help.strip() == written.partition("Parameters\n---")[0].strip()
