"""The backends of rules: requests to APIs, calls to MCP servers.

The part for MCP servers is loaded with the first rule that needs it.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from prometheus_client import Gauge

from beckon_adapter.caller import HttpCaller
from beckon_adapter.declaration import Call, Prepare, Run
from beckon_adapter.egress.client import EgressClient
from beckon_adapter.mcp.rule import NamedServer, parse_mcp_rule
from beckon_contract.catalogue.options import HTTP, MCP

if TYPE_CHECKING:
    from beckon_adapter.mcp.caller import McpCaller


class Backends:
    """All backends of rules, over one client for outgoing requests.

    `server` names the MCP server to start before any call.
    """

    def __init__(self, egress: EgressClient, servers: Sequence[NamedServer] = (), server: str = "") -> None:
        self.ready = not server
        self.differing = Gauge(
            "beckon_mcp_tools_differing",
            "Tools of an MCP server that are no longer what their EventTypes say.",
            ["server"],
            registry=None,
        )
        self._egress = egress
        self._server = server
        self._servers = tuple(servers)
        self._bridge: McpCaller | None = None
        self.by_annotation: Mapping[str, Prepare] = {
            HTTP: HttpCaller(egress).prepare_rule,
            MCP: self._prepare_mcp_rule,
        }

    async def keep_running(self) -> None:
        """Keep the MCP server `server`, if any, running until cancelled."""
        if self._server:
            await self._mcp_caller().keep_running(self._server, self._set_ready)

    async def close(self) -> None:
        """Close the MCP servers and all connections."""
        if self._bridge is not None:
            await self._bridge.close()
        await self._egress.client.aclose()

    def _set_ready(self) -> None:
        self.ready = True

    def _mcp_caller(self) -> "McpCaller":
        from beckon_adapter.mcp.caller import McpCaller  # noqa: PLC0415 costs 55 MB, few need it

        self._bridge = self._bridge or McpCaller(self._egress, self._servers, self.differing)
        return self._bridge

    def _prepare_mcp_rule(self, text: str, parameters: Mapping[str, object]) -> Run:
        rule = parse_mcp_rule(text)
        bridge = self._mcp_caller()
        expected = bridge.expect_tool(rule, parameters)

        async def run_call(arguments: Mapping[str, object], call: Call, _server: object = expected) -> object:
            return await bridge.call_tool(rule, arguments, call)

        return run_call
