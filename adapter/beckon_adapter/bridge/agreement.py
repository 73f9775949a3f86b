"""The comparison of MCP servers' tools with their EventTypes."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakSet

from mcp_types import Tool
from prometheus_client import Gauge

from beckon_contract.parameter_changes import parameters_changed

logger = logging.getLogger(__name__)

_MAX_LISTED = 10


@dataclass(frozen=True, eq=False)
class Expected:
    """A tool of a server as described by its EventType.

    It is compared as long as a reference to it exists: `Agreement` holds only a weak one.
    """

    server: str
    tool: str
    parameters: Mapping[str, Any]


class Agreement:
    """Compares tools, logs differences, and counts them for Prometheus.

    Differences are logged when they change.
    """

    def __init__(self, differing: Gauge) -> None:
        self._expected: WeakSet[Expected] = WeakSet()
        self._differing = differing
        self._logged: dict[str, tuple[str, ...]] = {}

    def expect(self, server: str, tool: str, parameters: Mapping[str, Any]) -> Expected:
        """Add the tool of an EventType to the comparison.

        It is removed when the returned object is garbage-collected.
        """
        expected = Expected(server, tool, parameters)
        self._expected.add(expected)
        return expected

    def compare(self, server: str, tools: Sequence[Tool]) -> None:
        """Compare the tools of a server with the expected ones."""
        listed = [each for each in self._expected if each.server == server]
        there = {tool.name: tool for tool in tools}
        found = tuple(sorted(set(_differences(listed, there))))
        self._differing.labels(server).set(len(found))
        if found == self._logged.get(server, ()):
            return
        self._logged[server] = found
        if not found:
            logger.info("the tools of the MCP server %s are again those of the EventTypes", server)
            return
        more = f", and {len(found) - _MAX_LISTED} more" if len(found) > _MAX_LISTED else ""
        logger.warning(
            "the MCP server %s is no longer what was imported: %s%s; import it again",
            server,
            "; ".join(found[:_MAX_LISTED]),
            more,
        )


def _differences(expected: Sequence[Expected], there: Mapping[str, Tool]) -> Iterator[str]:
    for each in expected:
        tool = there.get(each.tool)
        if tool is None:
            yield f"it has no tool {each.tool}"
        elif change := parameters_changed(each.parameters, tool.input_schema):
            yield f"{each.tool} has {change}"
