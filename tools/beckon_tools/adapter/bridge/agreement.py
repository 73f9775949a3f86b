"""Whether a server still has the tools that EventTypes were made of."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from mcp_types import Tool
from prometheus_client import Gauge

from beckon_contract.parameter_changes import parameters_changed

logger = logging.getLogger(__name__)

_MOST_TOLD = 10


@dataclass(frozen=True, eq=False)
class Expected:
    """What an EventType says of a tool of a server; it counts as long as somebody holds it."""

    server: str
    tool: str
    parameters: Mapping[str, Any]


class Agreement:
    """Compares, tells what differs once, and counts it for Prometheus."""

    def __init__(self, differing: Gauge) -> None:
        self._expected: WeakSet[Expected] = WeakSet()
        self._differing = differing
        self._told: dict[str, tuple[str, ...]] = {}

    def expect(self, server: str, tool: str, parameters: Mapping[str, Any]) -> Expected:
        """Take what an EventType says; forgotten with what is returned."""
        expected = Expected(server, tool, parameters)
        self._expected.add(expected)
        return expected

    def compare(self, server: str, tools: Sequence[Tool]) -> None:
        """Compare what a server has with what is expected of it."""
        asked = [each for each in self._expected if each.server == server]
        there = {tool.name: tool for tool in tools}
        found = tuple(sorted(set(_differences(asked, there))))
        self._differing.labels(server).set(len(found))
        if found == self._told.get(server, ()):
            return
        self._told[server] = found
        if not found:
            logger.info("the tools of the MCP server %s are again those of the EventTypes", server)
            return
        more = f", and {len(found) - _MOST_TOLD} more" if len(found) > _MOST_TOLD else ""
        logger.warning(
            "the MCP server %s is no longer what was imported: %s%s; import it again",
            server,
            "; ".join(found[:_MOST_TOLD]),
            more,
        )


def _differences(expected: Sequence[Expected], there: Mapping[str, Tool]) -> Iterator[str]:
    for each in expected:
        tool = there.get(each.tool)
        if tool is None:
            yield f"it has no tool {each.tool}"
        elif change := parameters_changed(each.parameters, tool.input_schema):
            yield f"{each.tool} has {change}"
