"""Tools answer while no agent runs: the answers wait until one is back, and every run goes on."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.cluster.journey.shared_store import Database, database, over, post, rolled_out, stored
from tests.cluster.kube import Kube, until
from tests.cluster.platform import NAMESPACE, Platform
from tests.cluster.pod_tool import PodTool, offered

__all__ = ["database", "stored"]

pytestmark = pytest.mark.timeout(600)

RUNS = 20
AWAY = 60.0
NAME = "survey"
PARAMETERS = '{"topic": {"type": "string"}, "required": ["topic"]}'
# Takes each call, and answers it some seconds later, when the agents are gone.
SOURCE = """
import asyncio
from beckon_tools import Later, Ticket, tool

working = set()


async def work(topic, ticket):
    await asyncio.sleep(SECONDS)
    print("answering", topic, flush=True)
    await ticket.answer({"topic": topic, "surveyed": True})
    print("answered", topic, flush=True)


@tool(type="survey")
async def survey(topic: str, ticket: Ticket) -> Later:
    \"\"\"Survey a topic, which takes long.\"\"\"
    print("surveying", topic, flush=True)
    task = asyncio.create_task(work(topic, ticket))
    working.add(task)
    return Later()
""".replace("SECONDS", "30")
# This Broker holds a request until the answer is delivered, and forgets the answer when the request ends.
SINK = "http://broker-ingress.knative-eventing.svc.cluster.local/default/default"


@pytest.fixture
def survey(stored: Platform) -> Iterator[Platform]:
    """The tool, in one pod."""
    with offered(
        stored, PodTool(NAME, SOURCE, PARAMETERS, {"K_SINK": SINK, "BECKON_TOOLS_OUTBOX": "/tmp/outbox.db"})
    ):
        yield stored


@contextmanager
def no_agents(kube: Kube) -> Iterator[None]:
    """Have no agent until the end of the block."""
    kube.run("scale", "deployment/beckon-agent", "--replicas=0")
    yield
    kube.run("scale", "deployment/beckon-agent", "--replicas=2")
    rolled_out(kube)


@pytest.mark.parametrize("away", ["agents", "database"])
def test_no_answer_is_lost_while_the_agents_or_their_database_are_away_for_a_minute(
    survey: Platform, database: Database, away: str
) -> None:
    kube = survey.kube.within(NAMESPACE)
    before = printed(kube, "answering")
    runs = [post(survey, request(number))["id"] for number in range(RUNS)]
    until(lambda: printed(kube, "surveying") == before + RUNS, within=60, what="the calls at the tool")
    assert printed(kube, "answering") == before, "the machine is too slow for this test"

    with database.away() if away == "database" else no_agents(kube):
        end = time.monotonic() + AWAY
        until(lambda: printed(kube, "answering") == before + RUNS, within=60, what="the tool's answers")
        time.sleep(max(0.0, end - time.monotonic()))
    survey.forward.close()

    until(lambda: all(over(survey, run) for run in runs), within=180, what="the end of all runs")
    done = [over(survey, run) or {} for run in runs]
    assert [one["status"] for one in done] == ["completed"] * RUNS
    assert [surveyed(one) for one in done] == [f"t{number}" for number in range(RUNS)]


def request(number: int) -> dict[str, object]:
    return {"model": "beckon", "input": f"Use survey: topic is t{number}", "background": True}


def printed(kube: Kube, word: str) -> int:
    """Return how many lines of the tool's log begin with a word."""
    log = kube.within("default").run("logs", f"deployment/{NAME}", "--tail=-1")
    return sum(line.startswith(word + " ") for line in log.splitlines())


def surveyed(response: dict[str, Any]) -> str:
    """Return the topic that the call of this response was answered with."""
    (call,) = [item for item in response["output"] if item["type"] == "mcp_call"]
    found: str = json.loads(call["output"])["topic"]
    return found
