"""An MCP server as it is published on npm, imported as people do; `clients.sh` brings it."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.run_beckon import beckon
from tests.e2e.local_platform import LocalPlatform

NODE = Path(os.environ.get("BECKON_TEST_CLIENTS", "/nowhere")) / "node"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not NODE.is_dir(), reason="tests/clients/clients.sh brings it"),
]


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """The platform with the server; npx finds it where it was brought to."""
    folder = tmp_path_factory.mktemp("everything")
    (folder / "node_modules").symlink_to(NODE / "node_modules")
    shutil.copy(NODE / "package.json", folder)
    done = beckon(
        *("import", "mcp", "--name", "everything", "--into", "made"),
        *("--", "npx", "-y", "@modelcontextprotocol/server-everything"),
        cwd=folder,
        seconds=240,
    )
    assert done.returncode == 0, done.stderr
    running = LocalPlatform(folder / "made" / "manifests", folder, {})
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


def called(platform: LocalPlatform, tool: str, **arguments: object) -> Any:
    answer = httpx.post(f"{platform.url}/tools/everything_{tool}", json=arguments, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def test_a_published_server_is_called_through_the_broker(everything: LocalPlatform) -> None:
    assert called(everything, "echo", message="hello") == "Echo: hello"
    assert "42" in str(called(everything, "get_sum", a=40, b=2))


def test_its_image_gets_the_version_that_answered_with_a_lock(everything: LocalPlatform) -> None:
    server = everything.folder.parent / "server"
    name = "@modelcontextprotocol/server-everything"
    wanted = json.loads((server / "package.json").read_text(encoding="utf-8"))["dependencies"]
    brought = json.loads((NODE / "node_modules" / name / "package.json").read_text(encoding="utf-8"))
    locked = json.loads((server / "package-lock.json").read_text(encoding="utf-8"))["packages"]

    assert wanted == {name: brought["version"]}
    assert all(each.get("integrity") for path, each in locked.items() if path)
    assert not any("resolved" in each for each in locked.values())
