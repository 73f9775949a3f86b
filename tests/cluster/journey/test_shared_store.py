"""Replicas share a PostgreSQL: the runs of killed pods go on in other ones, their calls made once."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.cluster.journey.shared_store import database, over, post, rolled_out, stored
from tests.cluster.kube import Kube, until
from tests.cluster.platform import NAMESPACE, Platform
from tests.cluster.pod_tool import PodTool, offered

__all__ = ["database", "stored"]

pytestmark = pytest.mark.timeout(600)

RUNS = 20
NAME = "ponder"
PARAMETERS = '{"topic": {"type": "string"}, "required": ["topic"]}'
# A service without the SDK, which does not recognise a second delivery. It counts its executions, works
# until all calls are there, and 5 s more: all agents are killed meanwhile.
SOURCE = """
import asyncio
import json

done = []


async def app(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    topic = json.loads(body)["topic"]
    done.append(topic)
    print("pondering", topic, flush=True)
    for _ in range(300):
        if len(done) >= RUNS:
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(5)
    print("pondered", topic, flush=True)
    call = dict(scope["headers"])
    headers = {
        b"ce-specversion": b"1.0",
        b"ce-id": call[b"ce-id"] + b".reply",
        b"ce-source": b"/ponder",
        b"ce-type": b"ponder.reply",
        b"ce-replyid": call[b"ce-correlationid"],
        b"ce-causationid": call[b"ce-id"],
        b"content-type": b"application/json",
    }
    await send({"type": "http.response.start", "status": 200, "headers": list(headers.items())})
    reply = json.dumps({"topic": topic, "pondered": done.count(topic)}).encode()
    await send({"type": "http.response.body", "body": reply})
""".replace("RUNS", str(RUNS))


@pytest.fixture
def pondering(stored: Platform) -> Iterator[Platform]:
    """A tool that takes its time, in one pod."""
    with offered(stored, PodTool(NAME, SOURCE, PARAMETERS, plain=True)):
        yield stored


def test_runs_whose_pods_are_killed_are_finished_by_other_ones_and_call_their_tool_once(
    pondering: Platform,
) -> None:
    kube = pondering.kube.within(NAMESPACE)
    topics = [f"t{number}" for number in range(RUNS)]
    with ThreadPoolExecutor(max_workers=RUNS) as pool:
        runs = [each["id"] for each in pool.map(lambda topic: post(pondering, request(topic)), topics)]
    until(lambda: sorted(printed(kube, "pondering")) == sorted(topics), within=60, what="the calls")
    assert printed(kube, "pondered") == [], "the machine is too slow for this test"
    began = time.monotonic()

    kube.run("delete", "pods", "--selector=app.kubernetes.io/component=agent", "--force", "--grace-period=0")

    rolled_out(kube)
    ended = until(lambda: all_over(pondering, runs), within=120, what="the end of all runs")
    sys.stdout.write(f"from the end of their pods to the answers: {time.monotonic() - began:.1f} s\n")
    assert [one["status"] for one in ended] == ["completed"] * RUNS
    assert [result(one) for one in ended] == [{"topic": topic, "pondered": 1} for topic in topics]
    assert sorted(printed(kube, "pondering")) == sorted(topics)


def all_over(platform: Platform, runs: list[str]) -> list[dict[str, Any]]:
    """Return the responses once all of them are over, else nothing."""
    found = [over(platform, run) for run in runs]
    return [one for one in found if one is not None] if None not in found else []


def request(topic: str) -> dict[str, object]:
    return {"model": "beckon", "input": f"Use ponder: topic is {topic}", "background": True}


def result(response: dict[str, Any]) -> object:
    """Return the result of the only call of a response, which its answer repeats."""
    (call,) = [item for item in response["output"] if item["type"] == "mcp_call"]
    found = json.loads(call["output"])
    assert found["topic"] in response["output"][-1]["content"][0]["text"]
    return found


def printed(kube: Kube, word: str) -> list[str]:
    """Return the topics in the lines of the tool's log that begin with a word."""
    log = kube.within("default").attempt("logs", f"deployment/{NAME}", "--tail=-1").stdout
    return [line.split()[1] for line in log.splitlines() if line.startswith(word + " ")]
