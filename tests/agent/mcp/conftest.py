"""MCP faces in front of the event platform of the module."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import pytest

from beckon_agent.api.mcp.server import McpSettings
from tests.agent.event_platform import EventPlatform
from tests.agent.mcp.mcp_server import McpServer, mcp_server
from tests.agent.tools_for_tests import BENCH


class StartMcp(Protocol):
    """Serves the tools of the tests to MCP clients."""

    def __call__(
        self, settings: McpSettings | None = None, *, max_runs: int = 16
    ) -> AbstractAsyncContextManager[McpServer]:
        """Serve until the end of the block."""
        ...


@pytest.fixture
def start_mcp(platform: EventPlatform) -> Iterator[StartMcp]:
    """Serve in front of the platform; its tools have forgotten what they saw."""
    BENCH.reset()

    def start(
        settings: McpSettings | None = None, *, max_runs: int = 16
    ) -> AbstractAsyncContextManager[McpServer]:
        return mcp_server(platform.shim, platform.folder, settings, max_runs=max_runs)

    yield start
    BENCH.gate.set()
