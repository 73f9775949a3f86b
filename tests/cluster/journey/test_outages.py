"""A pod of the Broker is deleted while calls go on: every call is answered, and the Tool shows the outage.

The tool is marked as idempotent: the ingress may end a connection before it acknowledges an event, and only
the call of such a tool is posted again then. Any other call ends as `outcome_unknown`.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import Platform

TOOL = "get.current.weather"
IDEMPOTENT = "beckon.dev/idempotent"
NAME = "get_current_weather"
EVENTING = "knative-eventing"
PAUSE = 0.1  # seconds between two calls: ten a second
AT_ONCE = 256  # more than are made in an outage of 20 s, so that no call begins late
DEADLINE = 30  # seconds of a call: the default of BECKON_CALL_TIMEOUT
SECONDS = 15  # longer than a pod of the Broker needs to be ready again, and an end of the load in any case


@dataclass
class Load:
    """The outcomes of calls at a steady pace: by status, and `unknown_tool` by itself."""

    made: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    offered: set[bool] = field(default_factory=set)
    ready: set[str] = field(default_factory=set)
    reasons: set[str] = field(default_factory=set)


@pytest.fixture
def quiet(installed: Platform) -> Iterator[Platform]:
    """The tool, marked as idempotent, once everything about it is well."""
    kube = installed.kube
    kube.run("annotate", "--overwrite", "eventtype", TOOL, f"{IDEMPOTENT}=true")
    until(lambda: _is_idempotent(kube.find("tool", TOOL)), within=60, what="an idempotent Tool")
    until(lambda: _is_repeatable(installed), within=60, what="the idempotent tool in the agent's catalogue")
    until(lambda: _is_well(kube), within=120, what="the Tool")
    until(lambda: installed.call(NAME, {"location": "Porto"}).status_code == 200, within=60, what="a call")
    yield installed
    until(lambda: _is_well(kube), within=120, what="the end of the outage")
    kube.run("annotate", "eventtype", TOOL, f"{IDEMPOTENT}-")


@pytest.mark.parametrize("part", ["broker-filter", "broker-ingress"])
def test_every_call_is_answered_while_a_pod_of_the_broker_is_replaced(quiet: Platform, part: str) -> None:
    eventing = quiet.kube.within(EVENTING)
    with calls(quiet) as load:
        time.sleep(1)  # some calls before it
        eventing.run("delete", "pod", "-l", f"eventing.knative.dev/brokerRole={part[7:]}", "--wait=false")
        _watch(quiet, load, SECONDS)

    assert load.made > SECONDS
    assert load.outcomes == {"answered": load.made}
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
            answer = platform.call(NAME, {"location": f"Porto {number}"}, timeout=DEADLINE + 5)
        except httpx.HTTPError as error:
            load.outcomes[type(error).__name__] += 1
            return
        load.outcomes[outcome_of(answer, f"Porto {number}")] += 1

    def pace(pool: ThreadPoolExecutor) -> None:
        while not over.wait(PAUSE) and time.monotonic() < end:
            load.made += 1
            pool.submit(call, load.made)

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        pacer = threading.Thread(target=pace, args=(pool,))
        pacer.start()
        try:
            yield load
        finally:
            over.set()
            pacer.join()


def outcome_of(answer: httpx.Response, location: str) -> str:
    """Return `answered` for the weather of this location, else the status and the reason."""
    if answer.status_code != 200:
        return f"{answer.status_code} {answer.text[:200]}"
    result = answer.json()["result"]
    return "answered" if result["location"] == location else f"200 {result}"


def _watch(platform: Platform, load: Load, seconds: float) -> None:
    """Note what the Tool and the agent say, again and again."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status, reason, _ = condition(platform.kube.find("tool", TOOL), "Ready")
        load.ready.add(status)
        load.reasons.add(reason)
        load.offered.add(NAME in {one["name"] for one in platform.tools()["tools"]})
        time.sleep(0.2)


def _is_idempotent(tool: Mapping[str, Any] | None) -> bool:
    return tool is not None and bool(tool["spec"].get("idempotent"))


def _is_repeatable(platform: Platform) -> bool:
    return any(tool["name"] == NAME and tool["idempotent"] for tool in platform.tools()["tools"])


def _is_well(kube: Kube) -> bool:
    tool = kube.find("tool", TOOL)
    return condition(tool, "Ready")[0] == "True" and condition(tool, "Available")[0] == "True"
