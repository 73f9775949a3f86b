"""MCP's own conformance suite and Inspector against the face; `conformance.sh` brings and runs them."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import pytest_asyncio

from beckon_agent.api.mcp.server import McpSettings
from beckon_contract.catalogue.builder import Catalogue
from beckon_runtime.origins import OriginPolicy
from tests.agent.event_platform import event_platform
from tests.agent.mcp import conformance_tools
from tests.agent.mcp.conformance_tools import TOOLS, by_hand
from tests.agent.mcp.mcp_server import LEGACY, MODERN, McpServer, mcp_server

MODULES = Path(os.environ.get("BECKON_TEST_NODE_MODULES", "/nowhere"))

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MODULES.is_dir(), reason="tests/agent/mcp/conformance.sh brings them from npm"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[McpServer]:
    """A face in front of the suite's tools, as on a laptop, with the defaults of both."""
    folder = tmp_path_factory.mktemp("manifests")
    settings = McpSettings(OriginPolicy.at("127.0.0.1", local_pages=True))
    async with (
        event_platform(folder, TOOLS, {}, *by_hand(TOOLS[0].service), settings={}) as platform,
        mcp_server(platform.shim, platform.folder, settings) as running,
    ):

        def add_a_tool() -> None:
            tools = running.catalogue.current.tools
            added = replace(tools["test_error_handling"], name=f"test_added_{len(tools)}")
            running.catalogue.current = Catalogue({**tools, added.name: added})

        conformance_tools.CHANGES.append(add_a_tool)
        yield running


NOT_OFFERED = (
    "completion-",
    "elicitation-",
    "input-required-result-",
    "prompts-",
    "resources-",
    "sep-2164-resource-",
    "tasks-",  # tried in test_task_conformance, with a store
    "tools-call-elicitation",
    "tools-call-sampling",
)
"""Scenarios of what is no part of the face, or needs a server of the suite's own: see decision 0070."""

EXPECTED = {
    LEGACY: set[str](),
    MODERN: {
        # This service has no store, so no runs as resources; test_task_conformance.py has these checks.
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
    },
}


@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_all_that_a_revision_requires_of_tools_passes(
    server: McpServer, revision: str, tmp_path: Path
) -> None:
    await node(
        "conformance/dist/index.js",
        "server",
        f"--url={server.url}/mcp",
        f"--requirements={revision}",
        f"--output-dir={tmp_path}",
    )
    checks = list(read_checks(tmp_path, NOT_OFFERED))
    passed = [check["id"] for check in checks if check["status"] == "SUCCESS"]
    print(f"{revision}: {len(passed)} checks passed")  # noqa: T201  # the result
    assert {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")} == EXPECTED[
        revision
    ]
    assert len(passed) >= 36


async def node(script: str, *arguments: str) -> tuple[int, str]:
    """Run a program of the installed packages; return its exit code and what it printed."""
    program = MODULES / "@modelcontextprotocol" / script
    with TemporaryDirectory() as home:  # the Inspector keeps things in its user's
        process = await asyncio.create_subprocess_exec(
            MODULES / ".bin" / "node",
            program,
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "HOME": home},
        )
        printed, _ = await process.communicate()
    return process.returncode or 0, printed.decode()


def read_checks(results: Path, left_out: tuple[str, ...] = ()) -> Iterator[dict[str, str]]:
    """Yield the checks of all scenarios, but of those whose names begin with one of `left_out`."""
    for path in results.rglob("checks.json"):
        if not path.parent.name.removeprefix("server-").startswith(left_out):
            yield from json.loads(path.read_text())


async def inspect(server: McpServer, *arguments: str) -> dict[str, Any]:
    """Return what the Inspector says of a method."""
    script = "inspector/clients/launcher/build/index.js"
    code, printed = await node(script, "--cli", f"{server.url}/mcp", "--transport", "http", *arguments)
    assert code == 0, printed
    document: dict[str, Any] = json.loads(printed)
    return document


async def test_the_inspector_finds_nothing_to_complain_of_in_the_tools(server: McpServer) -> None:
    listed = await inspect(server, "--method", "tools/list", "--strict")

    assert [tool["name"] for tool in listed["tools"]] == list(server.catalogue.current.tools)


async def test_the_inspector_calls_a_tool(server: McpServer) -> None:
    call = ("--method", "tools/call", "--tool-name", "test_simple_text")

    assert (await inspect(server, *call))["content"][0]["text"].startswith("This is a simple text")
