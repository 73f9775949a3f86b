"""A new tool from nothing to the cluster: `beckon new tool`, its image, its manifests, a question."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.images.building import built_images
from tests.cluster.images.store import store
from tests.cluster.kube import until
from tests.cluster.machine.images import load
from tests.cluster.machine.places import places
from tests.cluster.platform import Platform

pytestmark = pytest.mark.timeout(900)

IMAGE = "dev.local/order-status:0.1.0"
QUESTION = "What is the order status of 1001?"


@pytest.fixture(scope="module")
def deployed(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """The platform with a new tool, deployed as the project's README says."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("building images here needs root on Debian")
    where = tmp_path_factory.mktemp("new")
    command = [sys.executable, "-m", "beckon_cli", "new", "tool", "order-status"]
    subprocess.run(command, cwd=where, check=True, timeout=60)
    project = where / "order-status"
    load(places(), built(project, where / "order-status.tar"))
    platform.kube.apply(project / "manifests")
    yield platform
    platform.kube.run("delete", "--wait=false", "-f", str(project / "manifests"))


def built(project: Path, tar: Path) -> Path:
    """Build the project's Dockerfile on Beckon's image of tools; return a docker-archive."""
    tools = built_images()["tools"]
    images = store(places())
    images.run("pull", "--quiet", f"docker-archive:{tools}")
    images.run("build", "--pull-never", "--layers", "--network=host", "--tag", IMAGE, project)
    images.export(IMAGE, tar)
    return tar


def test_its_tool_becomes_ready_by_the_manifests_as_they_were_printed(deployed: Platform) -> None:
    until(lambda: deployed.kube.find("tool", "order.status"), what="the Tool")

    deployed.kube.wait("ksvc/order-status", timeout=180)
    deployed.kube.wait("tool/order.status", timeout=60)


def test_a_question_is_answered_by_it(deployed: Platform) -> None:
    deployed.kube.wait("tool/order.status", timeout=60)
    deployed.wait_until_offered("order_status")

    assert "found packed" in deployed.ask(QUESTION)
