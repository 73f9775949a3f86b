"""Tools of real MCP servers, imported by a command and called as events in the local platform."""

import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from mcp import Client

from tests.cli.run_beckon import beckon
from tests.e2e.conftest import Start, Workbench
from tests.e2e.local_platform import ROOT, LocalPlatform, clean_environment, port_range
from tests.patience import PATIENCE, wait_until

SERVER = ROOT / "tests" / "adapter" / "mcp_tools.py"
# Patient, so that a server may take its time to come back on a busy machine.
BROKER = yaml.safe_dump(
    {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": "default"},
        "spec": {"delivery": {"retry": 20, "backoffPolicy": "linear", "backoffDelay": "PT0.2S"}},
    }
)


def called(platform: LocalPlatform, name: str, **arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = httpx.post(f"{platform.url}/tools/{name}", json=arguments, timeout=50).json()
    return found


@contextmanager
def http_server(port: int) -> Iterator[None]:
    """Run the server over HTTP until the end."""
    process = subprocess.Popen(
        [sys.executable, SERVER, str(port)], env=clean_environment({}), stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _answers(port), 30)
        yield
    finally:
        process.kill()
        process.wait(20)


def _answers(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/", timeout=PATIENCE)
    except httpx.TransportError:
        return False
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (folder := tmp_path / "manifests").mkdir()
    return folder


def test_a_model_calls_the_tool_of_a_command(workbench: Workbench, folder: Path) -> None:
    command = (sys.executable, str(SERVER))
    done = beckon(
        "import", "mcp", "--name", "numbers", "--select", "add", "--output", str(folder), "--", *command
    )
    assert done.returncode == 0, done.stderr
    manifests = {file.stem: file.read_text() for file in folder.iterdir()}

    with workbench.tools("numbers_add", **manifests):
        answer = httpx.post(
            f"{workbench.platform.url}/v1/chat/completions",
            json={
                "model": "beckon",
                "messages": [{"role": "user", "content": "Add two numbers: a=19 and b=23"}],
            },
            timeout=50,
        ).json()
        result = called(workbench.platform, "numbers_add", a=19, b=23)["result"]

    assert result == {"result": 42}
    assert "numbers_add" in answer["choices"][0]["message"]["content"]


async def test_who_waits_gets_what_the_server_says_of_its_progress(
    start_platform: Start, folder: Path, tmp_path: Path
) -> None:
    command = ("--name", "numbers", "--select", "count", "--output", str(folder), "--", sys.executable)
    done = beckon("import", "mcp", *command, str(SERVER))
    assert done.returncode == 0, done.stderr
    platform = start_platform(folder, BECKON_TOOLS_PROGRESS_SECONDS="0")
    shown = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        shown.append((progress, total, message))
        (tmp_path / f"{progress:.0f}").touch()

    async with Client(f"{platform.url}/mcp") as client:
        arguments = {"to": 3, "received": str(tmp_path)}
        result = await client.call_tool("numbers_count", arguments, progress_callback=note)

    assert not result.is_error
    assert [one for one in shown if " of " in str(one[2])] == [(n, 3, f"{n} of 3, ") for n in (1, 2, 3)]


def test_a_call_waits_for_a_server_that_died_to_come_back(start_platform: Start, folder: Path) -> None:
    port = port_range()
    with http_server(port):
        done = beckon(
            "import", "mcp", f"http://127.0.0.1:{port}/mcp", "--name", "remote", "--output", str(folder)
        )
        assert done.returncode == 0, done.stderr
        (allowed,) = re.findall(r'BECKON_ADAPTER_ALLOWED_HOSTS="(.*)"', done.stdout)
        (folder / "broker.yaml").write_text(BROKER)
        platform = start_platform(folder, BECKON_ADAPTER_ALLOWED_HOSTS=allowed, BECKON_LOG_LEVEL="info")
        assert called(platform, "remote_add", a=1, b=2)["result"] == {"result": 3}
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(called, platform, "remote_add", a=2, b=3)
        wait_until(lambda: "answered 503: the MCP server 127.0.0.1 is lost" in platform.text())
        assert not waiting.done()
        with http_server(port):
            assert waiting.result()["result"] == {"result": 5}
