"""A tool that is a Knative Service is called, whatever state its pods are in."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import httpx
import pytest

from tests.cluster.kube import Kube, condition, until
from tests.cluster.platform import Platform
from tests.cluster.serving.services import Service

Make = Callable[[Service], Service]
PATIENT = {"beckon.dev/timeout": "60s"}
SLEEPERS = (
    Service("sleeper"),
    Service("crowd"),
    Service("slow-starter", delay=6, annotations=PATIENT),
    Service("near", direct=True),
    Service("patient", annotations=PATIENT),
)


def result(answer: httpx.Response) -> str:
    """Return what the calculator of a Service calculated."""
    assert answer.status_code == 200, answer.text
    calculated: str = answer.json()["result"]["result"]
    return calculated


@pytest.fixture(scope="module")
def sleeping(platform: Platform) -> Iterator[Platform]:
    """The platform with Services that sleep, each for one test: they fall asleep at the same time."""
    kube = platform.kube
    for service in SLEEPERS:
        kube.apply(service.all())
    for wait in (offered, asleep):
        for service in SLEEPERS:
            wait(platform, service)
    yield platform
    for service in SLEEPERS:
        kube.run("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=service.all())


@pytest.fixture
def tool(platform: Platform) -> Iterator[Make]:
    """Makes a Service a tool, and takes it away after the test."""
    kube, made = platform.kube, list[Service]()

    def make(service: Service) -> Service:
        made.append(service)
        kube.apply(service.all())
        return service

    yield make
    for service in made:
        kube.run("delete", "--ignore-not-found", "--wait=false", "-f", "-", stdin=service.all())


def test_a_service_at_zero_wakes_and_answers_a_model(sleeping: Platform) -> None:
    answer = sleeping.ask("Use sleeper to calculate 17% of 2340")

    assert "397.8" in answer


def test_thirty_calls_at_once_wake_a_service_and_are_all_answered(sleeping: Platform) -> None:
    with ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda n: sleeping.call("crowd", {"expression": f"{n}+1"}), range(30)))

    assert [result(answer) for answer in answers] == [str(n + 1) for n in range(30)]


def test_a_service_that_starts_slowly_answers_within_its_time(sleeping: Platform) -> None:
    begun = time.monotonic()

    answer = sleeping.call("slow_starter", {"expression": "2+2"})

    assert result(answer) == "4"
    assert time.monotonic() - begun > 6


def test_a_direct_call_wakes_a_service_without_a_trigger(sleeping: Platform) -> None:
    answer = sleeping.call("near", {"expression": "17% of 2340"})

    assert result(answer) == "397.8"
    assert condition(sleeping.kube.get("tool", "near"), "Routed")[1] == "Direct"


def test_a_call_survives_the_death_of_the_activator(sleeping: Platform) -> None:
    activator = sleeping.kube.within("knative-serving")
    activator.run("delete", "pod", "-l", "app=activator", "--grace-period=0", "--force", "--wait=false")

    answer = sleeping.call("patient", {"expression": "6*7"})

    assert result(answer) == "42"


def test_no_call_fails_while_a_new_revision_rolls_out(platform: Platform, tool: Make) -> None:
    rolled = tool(Service("rolled", annotations=PATIENT))
    offered(platform, rolled)

    with calling(platform, "rolled") as answers:
        until(lambda: len(answers()) > 5, what="calls before the roll-out")
        platform.kube.apply(Service("rolled", settings={"REVISION": "2"}).service())
        until(lambda: revision(platform.kube, "rolled").endswith("-00002"), within=60, what="revision 2")
        before = len(answers())
        until(lambda: len(answers()) > before + 10, what="calls after the roll-out")

    statuses = {answer.status_code for answer in answers()}
    assert statuses == {200}


def test_a_service_that_does_not_exist_shows_in_the_condition(platform: Platform, tool: Make) -> None:
    kube, missing = platform.kube, Service("not-there")
    kube.apply(missing.event_type())
    kube.apply(missing.trigger())

    try:
        until(lambda: reason(kube, "not-there") == "ServiceNotFound", what="the reason ServiceNotFound")
        _, _, message = condition(kube.find("tool", "not-there"), "Ready")
        answer = platform.call("not_there", {"expression": "1"})
    finally:
        kube.run("delete", "--wait=false", "eventtype,trigger", "not-there")

    assert "not-there" in message
    assert answer.status_code == 404


def test_a_service_that_crashes_shows_in_the_condition(platform: Platform, tool: Make) -> None:
    tool(Service("crashing", command=("python", "-c", "raise SystemExit('out of order')")))

    until(
        lambda: reason(platform.kube, "crashing") == "ServiceNotReady",
        what="the reason ServiceNotReady",
    )
    status, _, message = condition(platform.kube.find("tool", "crashing"), "Ready")

    assert status == "False"
    assert "crashing" in message


def reason(kube: Kube, name: str) -> str:
    return condition(kube.find("tool", name), "Ready")[1]


def revision(kube: Kube, name: str) -> str:
    found = kube.find("services.serving.knative.dev", name) or {}
    return str(found.get("status", {}).get("latestReadyRevisionName", ""))


def offered(platform: Platform, service: Service) -> None:
    """Wait until a model is offered the tool, and its calls arrive."""
    platform.wait_until_offered(service.name.replace("-", "_"), within=90)


def asleep(platform: Platform, service: Service) -> None:
    """Wait until no pod of a Service takes calls any more."""
    kube, selector = platform.kube, f"serving.knative.dev/service={service.name}"

    def sleeps() -> bool:
        deployments = kube.list_objects("deployments", selector)
        going = all("deletionTimestamp" in one["metadata"] for one in kube.list_objects("pods", selector))
        return bool(deployments) and all(not one["spec"]["replicas"] for one in deployments) and going

    until(sleeps, within=120, what=f"the sleep of {service.name}")


@contextmanager
def calling(platform: Platform, tool: str) -> Iterator[Callable[[], list[httpx.Response]]]:
    """Call a tool without a pause by three callers until the block ends; gives what has been answered."""
    stop, answers = Event(), list[httpx.Response]()

    def caller() -> None:
        while not stop.is_set():
            answers.append(platform.call(tool, {"expression": "1+1"}))

    with ThreadPoolExecutor(3) as pool:
        callers: list[Future[None]] = [pool.submit(caller) for _ in range(3)]
        try:
            yield lambda: list(answers)
        finally:
            stop.set()
    for one in callers:
        one.result()
