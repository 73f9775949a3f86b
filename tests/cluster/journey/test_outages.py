"""A pod of the Broker is deleted while calls go on: no tool is taken away, and the Tool shows why."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import Platform

TOOL = "get.current.weather"
NAME = "get_current_weather"
EVENTING = "knative-eventing"
PAUSE = 0.1  # seconds between two calls: ten a second
SECONDS = 15  # longer than a pod of the Broker needs to be ready again, and an end of the load in any case


@dataclass
class Load:
    """What calls at a steady pace came to: by status, and `unknown_tool` by itself."""

    outcomes: Counter[str] = field(default_factory=Counter)
    offered: set[bool] = field(default_factory=set)
    ready: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)


@pytest.fixture
def quiet(installed: Platform) -> Iterator[Platform]:
    """The tool, once everything about it is well."""
    until(lambda: _is_well(installed.kube), within=120, what="the Tool")
    until(lambda: installed.call(NAME, {"location": "Porto"}).status_code == 200, within=60, what="a call")
    yield installed
    until(lambda: _is_well(installed.kube), within=120, what="the end of the outage")


@pytest.mark.parametrize("part", ["broker-filter", "broker-ingress"])
def test_no_call_finds_its_tool_gone_while_a_pod_of_the_broker_is_replaced(
    quiet: Platform, part: str
) -> None:
    eventing = quiet.kube.within(EVENTING)
    with calls(quiet) as load:
        time.sleep(1)  # some calls before it
        eventing.run("delete", "pod", "-l", f"eventing.knative.dev/brokerRole={part[7:]}", "--wait=false")
        _watch(quiet, load, SECONDS)

    assert sum(load.outcomes.values()) > SECONDS
    assert load.outcomes["answered"] > 0, load.outcomes
    assert load.outcomes["unknown_tool"] == 0, load.outcomes
    assert load.ready == {"True"}, load.reasons
    assert load.offered == {True}


def test_a_broker_without_pods_shows_in_the_tool_which_stays_ready(quiet: Platform) -> None:
    eventing = quiet.kube.within(EVENTING)
    eventing.run("scale", "deployment/mt-broker-filter", "--replicas=0")
    try:
        until(
            lambda: condition(quiet.kube.find("tool", TOOL), "Available")[0] == "False",
            within=60,
            what="Available=False",
        )
        tool = quiet.kube.get("tool", TOOL)
        line = quiet.kube.run("get", "tools", TOOL).splitlines()[1].split()
        assert condition(tool, "Ready")[:2] == ("True", "BrokerUnavailable")
        assert line[2:4] == ["True", "False"]
        assert NAME in {one["name"] for one in quiet.tools()["tools"]}
    finally:
        eventing.run("scale", "deployment/mt-broker-filter", "--replicas=1")


@contextmanager
def calls(platform: Platform) -> Iterator[Load]:
    """Call the tool at a steady pace, until the block ends or three times `SECONDS` are over."""
    load, over = Load(), threading.Event()
    end = time.monotonic() + 3 * SECONDS

    def call(number: int) -> None:
        try:
            answer = platform.call(NAME, {"location": f"Porto {number}"}, timeout=60)
        except httpx.HTTPError as error:
            load.outcomes[type(error).__name__] += 1
            return
        unknown = answer.status_code == 404 and "unknown_tool" in answer.text
        said = "unknown_tool" if unknown else str(answer.status_code)
        load.outcomes["answered" if answer.status_code == 200 else said] += 1

    def pace(pool: ThreadPoolExecutor) -> None:
        number = 0
        while not over.wait(PAUSE) and time.monotonic() < end:
            pool.submit(call, number := number + 1)

    with ThreadPoolExecutor(max_workers=64) as pool:
        pacer = threading.Thread(target=pace, args=(pool,))
        pacer.start()
        try:
            yield load
        finally:
            over.set()
            pacer.join()


def _watch(platform: Platform, load: Load, seconds: float) -> None:
    """Note what the Tool and the agent say, again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status, reason, _ = condition(platform.kube.find("tool", TOOL), "Ready")
        load.ready.add(status)
        load.reasons.add(reason)
        load.offered.add(NAME in {one["name"] for one in platform.tools()["tools"]})
        time.sleep(0.2)


def _is_well(kube: Kube) -> bool:
    tool = kube.find("tool", TOOL)
    return condition(tool, "Ready")[0] == "True" and condition(tool, "Available")[0] == "True"
