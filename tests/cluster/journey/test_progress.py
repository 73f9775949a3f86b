"""What a tool in a pod reports reaches its caller: through the Broker, its second Trigger, two shims."""

from collections.abc import Iterator

import httpx
import pytest

from tests.cluster.platform import Platform, messages
from tests.cluster.pod_tool import PodTool, offered

pytestmark = pytest.mark.timeout(600)

NAME = "sweep"
PARAMETERS = '{"rooms": {"type": "integer"}, "required": ["rooms"]}'
# Slow enough for each report to arrive before the next one, whichever replica it comes to first.
SOURCE = """
import asyncio
from beckon_tools import Progress, tool


@tool(type="sweep")
async def sweep(rooms: int, progress: Progress) -> str:
    \"\"\"Sweep rooms.\"\"\"
    for room in range(1, rooms + 1):
        await progress.report(room, rooms, f"room {room}")
        await asyncio.sleep(2)
    return f"{rooms} rooms"
"""


@pytest.fixture(scope="module")
def sweeping(platform: Platform) -> Iterator[Platform]:
    """A tool that reports every room, in one pod."""
    sink = platform.kube.get("broker", "default")["status"]["address"]["url"]
    with offered(platform, PodTool(NAME, SOURCE, PARAMETERS, {"K_SINK": sink})):
        platform.kube.wait("trigger/default-beckon-progress")
        yield platform


def test_a_client_of_mcp_gets_each_report(sweeping: Platform) -> None:
    call = {"name": NAME, "arguments": {"rooms": 3}, "_meta": {"progressToken": "rooms"}}
    headers = {
        **sweeping.headers,
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = httpx.post(f"{sweeping.url}/mcp", json=body, headers=headers, timeout=60)

    shown = messages(answer)
    reports = [one["params"] for one in shown if one.get("method") == "notifications/progress"]
    assert [one for one in reports if str(one["message"]).startswith("room")] == [
        {"progressToken": "rooms", "progress": room, "total": 3, "message": f"room {room}"}
        for room in (1, 2, 3)
    ]
    assert "3 rooms" in str(shown[-1]["result"])


def test_whichever_replica_gets_a_report_passes_it_on(sweeping: Platform) -> None:
    for _ in range(4):
        assert [one.get("progress") for one in sweeping.stream(NAME, {"rooms": 2})] == [1, 2, None]
