"""Calls without end, made inside the cluster, where a rolled pod does not cut the caller off."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.cluster.images.inputs import reference
from tests.cluster.kube import Kube, until
from tests.cluster.platform import first_key

TOOLS_IMAGE = reference("tools")
TOOL = "rolling-sum"
CALLERS = 4
SERVE = ("--", "python", "-m", "beckon_tools", "serve", "calculator", "--host=0.0.0.0")
_URL = "http://beckon-agent.beckon.svc.cluster.local/tools/rolling_sum"
_POD = "beckon-caller"

# Every call has a connection of its own, so that each may meet another replica.
_PROGRAM = """
import json, signal, threading, time, urllib.request, urllib.error
JSON = {"Content-Type": "application/json", "Authorization": "Bearer KEY"}
stop, telling, failures, done = threading.Event(), threading.Lock(), [], [0]
signal.signal(signal.SIGTERM, lambda *_: stop.set())
def call(expression, seconds):
    request = urllib.request.Request(URL, json.dumps({"expression": expression}).encode(), JSON)
    with urllib.request.urlopen(request, timeout=seconds) as response:
        response.read()
def caller(number):
    while not stop.is_set():
        begun = time.time()
        try:
            call(f"{number} + {done[0]}", 60)
        except urllib.error.HTTPError as error:
            failures.append(f"{begun:.1f} +{time.time() - begun:.2f}: {error.code} {error.read(300)!r}")
        except OSError as error:
            failures.append(f"{begun:.1f} +{time.time() - begun:.2f}: {error!r}")
        with telling:
            done[0] += 1
            print(json.dumps({"calls": done[0], "failures": failures}), flush=True)
        time.sleep(0.02)
# Knative says that a Trigger is ready a moment before its dispatcher has heard of it.
while not stop.is_set():
    try:
        call("1 + 1", 2)
        break
    except OSError:
        time.sleep(0.2)
for number in range(CALLERS):
    threading.Thread(target=caller, args=(number,)).start()
"""


@dataclass(frozen=True)
class Calls:
    """What the callers have seen: how many calls ended, and how those failed that did."""

    calls: int
    failures: list[str]


@contextmanager
def tool(kube: Kube) -> Iterator[None]:
    """A calculator in an ordinary Deployment, with its EventType and its Trigger.

    Each time its calls have another source: Knative goes on for a moment to deliver to a Trigger
    that was deleted, and its like must not take calls meanwhile that the next one does not get.
    """
    source = f"/callers/{secrets.token_hex(4)}"
    kube.run("create", "deployment", TOOL, f"--image={TOOLS_IMAGE}", *SERVE)
    try:
        kube.run("expose", "deployment", TOOL, "--port=80", "--target-port=8080")
        kube.apply(json.dumps(_event_type(source)))
        kube.apply(json.dumps(_trigger(source)))
        kube.run("rollout", "status", f"deployment/{TOOL}", "--timeout=60s")
        until(lambda: kube.find("tool", TOOL), what="the Tool")
        kube.wait(f"tool/{TOOL}")
        yield
    finally:
        kube.run("delete", "deployment,service,trigger,eventtype", TOOL, "--ignore-not-found")
        until(lambda: kube.find("tool", TOOL) is None, what="the end of the Tool")


@contextmanager
def calling(kube: Kube) -> Iterator[None]:
    """Call the tool all the time, from a pod."""
    program = (
        _PROGRAM.replace("URL", repr(_URL)).replace("CALLERS", str(CALLERS)).replace("KEY", first_key(kube))
    )
    kube.run(
        "run", _POD, f"--image={TOOLS_IMAGE}", "--restart=Never", "--command", "--", "python", "-c", program
    )
    try:
        until(lambda: seen(kube).calls > 20, within=60, what="calls")
        yield
    finally:
        kube.run("delete", "pod", _POD, "--ignore-not-found")


def seen(kube: Kube) -> Calls:
    """Return what the callers have seen up to now; the last line may be half written, or not there yet."""

    def whole_line() -> str:
        lines = kube.attempt("logs", _POD, "--tail=2").stdout.splitlines(keepends=True)
        return next((line for line in reversed(lines) if line.endswith("}\n")), "")

    return Calls(**json.loads(until(whole_line, within=60, what="a line of the callers")))


def _event_type(source: str) -> dict[str, object]:
    annotations = {"beckon.dev/parameters": '{"expression": {"type": "string"}}'}
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {"name": TOOL, "annotations": annotations},
        "spec": {"type": "calculator", "source": source, "description": "Calculate."},
    }


def _trigger(source: str) -> dict[str, object]:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": TOOL},
        "spec": {
            "broker": "default",
            "filter": {"attributes": {"type": "calculator", "source": source}},
            "subscriber": {"ref": {"apiVersion": "v1", "kind": "Service", "name": TOOL}},
        },
    }
