"""Replicas share a PostgreSQL: the run of a killed pod goes on in another one, its calls made once."""

import json
import sys
import time
from collections.abc import Iterator

import pytest

from tests.cluster.journey.shared_store import database, over, post, rolled_out, stored
from tests.cluster.kube import Kube, until
from tests.cluster.platform import NAMESPACE, Platform
from tests.cluster.pod_tool import PodTool, offered

__all__ = ["database", "stored"]

pytestmark = pytest.mark.timeout(600)

NAME = "ponder"
PARAMETERS = '{"topic": {"type": "string"}, "required": ["topic"]}'
# Counts what it really did, and takes long enough for its caller to be killed meanwhile.
SOURCE = """
import asyncio
from beckon_tools import tool

done = []


@tool(type="ponder")
async def ponder(topic: str) -> dict[str, object]:
    \"\"\"Ponder a topic for a while.\"\"\"
    done.append(topic)
    print("pondering", topic, flush=True)
    await asyncio.sleep(6)
    return {"topic": topic, "pondered": len(done)}
"""


@pytest.fixture
def pondering(stored: Platform) -> Iterator[Platform]:
    """A tool that takes its time, in one pod."""
    with offered(stored, PodTool(NAME, SOURCE, PARAMETERS)):
        yield stored


def test_a_run_whose_pod_is_killed_is_finished_by_another_one(pondering: Platform) -> None:
    kube = pondering.kube.within(NAMESPACE)
    asked = post(pondering, {"model": "beckon", "input": "Use ponder: topic is rivers", "background": True})
    until(lambda: called(kube), within=60, what="the call at the tool")
    began = time.monotonic()

    kube.run("delete", "pods", "--selector=app.kubernetes.io/component=agent", "--force", "--grace-period=0")

    rolled_out(kube)
    done = until(lambda: over(pondering, asked["id"]), within=120, what="the end of the run")
    assert done is not None
    sys.stdout.write(f"from the end of its pod to the answer: {time.monotonic() - began:.1f} s\n")
    assert done["status"] == "completed", done
    (call,) = [item for item in done["output"] if item["type"] == "mcp_call"]
    assert json.loads(call["output"]) == {"topic": "rivers", "pondered": 1}
    assert "rivers" in done["output"][-1]["content"][0]["text"]


def called(kube: Kube) -> bool:
    """Whether the tool has been called: its pod says so in its log."""
    return "pondering" in kube.within("default").attempt("logs", f"deployment/{NAME}", "--tail=5").stdout
