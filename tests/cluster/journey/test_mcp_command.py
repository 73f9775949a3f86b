"""An MCP server that is a command, from `beckon import mcp --into` to calls in the cluster."""

import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.images.building import built_images
from tests.cluster.images.mcp_command import SECRET, SERVER, built, imported
from tests.cluster.kube import until
from tests.cluster.machine.images import load
from tests.cluster.machine.places import places
from tests.cluster.platform import Platform

pytestmark = pytest.mark.timeout(900)

SINK = "K_SINK"
NAME = "wild"
# What runs the server: the options of its import, and what becomes ready or available.
KINDS = {
    "Deployment": (("--deployment",), f"deployment/mcp-{NAME}", "Available"),
    "Service of Knative": ((), f"ksvc/mcp-{NAME}", "Ready"),
}


@dataclass(frozen=True)
class Deployed:
    """A server in the cluster."""

    platform: Platform

    def call(self, tool: str, **arguments: object) -> object:
        """Call one of its tools through the Broker."""
        answer = self.platform.call(f"{NAME}_{tool}", arguments)
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]


@pytest.fixture(scope="module")
def image_is_there(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Have the image of the server on the node; what runs it makes no difference to it."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("building images here needs root on Debian")
    where = tmp_path_factory.mktemp("image")
    tar = built(project(where), built_images()["tools"], f"dev.local/mcp-{NAME}:0.1.0", where / "image.tar")
    load(places(), tar)


def project(where: Path, *options: str) -> Path:
    """Import the server into a folder of its own; return that."""
    words = ("--name", NAME, *options, "--", sys.executable, str(SERVER))
    return imported(where / NAME, *words, secret=SECRET)


@pytest.fixture(scope="module", params=KINDS)
def deployed(
    request: pytest.FixtureRequest,
    image_is_there: None,
    platform: Platform,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployed]:
    """The platform with a server, deployed as the import says what is next."""
    options, what, condition = KINDS[request.param]
    manifests = project(tmp_path_factory.mktemp("project"), *options) / "manifests"
    kube = platform.kube
    kube.run("create", "secret", "generic", f"mcp-{NAME}", f"--from-literal=SECRET={SECRET}")
    kube.apply(manifests)
    # The binding puts the Broker's address into the Pod, which begins anew then.
    kube.wait(f"sinkbinding/mcp-{NAME}", timeout=60)
    until(lambda: SINK in json.dumps(kube.get(*what.split("/"))["spec"]), what=f"{SINK} in {what}")
    if request.param == "Deployment":
        kube.run("rollout", "status", what, "--timeout=180s", timeout=200)
    kube.wait(what, condition=condition, timeout=180)
    platform.wait_until_offered(*(f"{NAME}_{tool}" for tool in ("process", "secret", "end", "walk")))
    until(lambda: platform.call(f"{NAME}_process", {}).status_code == 200, within=120, what="a first answer")
    yield Deployed(platform)
    kube.run("delete", "-f", str(manifests), timeout=120)
    kube.run("delete", "secret", f"mcp-{NAME}")


def test_one_process_answers_every_call(deployed: Deployed) -> None:
    assert deployed.call("process") == deployed.call("process")


def test_the_server_gets_its_secret_and_the_model_does_not(deployed: Deployed) -> None:
    assert deployed.call("secret") == "it is [hidden]"


def test_who_waits_gets_what_the_server_says_of_its_progress(deployed: Deployed) -> None:
    shown = deployed.platform.stream(f"{NAME}_walk", {"steps": 2})

    assert [one.get("message") for one in shown] == ["step 1", "step 2", None]
    assert shown[-1]["result"] == "there"


def test_a_server_that_ended_in_a_call_is_started_again_and_the_call_is_not_repeated(
    deployed: Deployed,
) -> None:
    before = deployed.call("process")

    lost = deployed.platform.call(f"{NAME}_end", {})
    until(lambda: deployed.call("process") != before, what="another process")

    assert "may have had its effect, and was not repeated" in lost.text
