"""docs/laptop-to-cluster.md, followed to its end; buildah and containerd stand in for Docker and kind."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.chart.charts import ROOT
from tests.cluster.images.building import built_images
from tests.cluster.images.inputs import reference
from tests.cluster.images.store import store
from tests.cluster.install.pages import Shell
from tests.cluster.install.releases import Helm
from tests.cluster.kube import Kube, until
from tests.cluster.machine.images import load
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE
from tests.docs.blocks import blocks

pytestmark = pytest.mark.timeout(900)

PAGE = ROOT / "docs" / "laptop-to-cluster.md"
ASK = "beckon ask "
SET_UP = {"make setup", ". .venv/bin/activate"}
"""What made this environment."""
LOCAL_PLATFORM = {"beckon up --manifests manifests", 'beckon ask "What is the status of order 1001?"'}
"""What tests/e2e/test_new_tool.py runs."""
MODEL = "model"
PROVIDER = {"https://api.openai.com/v1": f"http://{MODEL}.{NAMESPACE}:8084/v1", "gpt-4.1-mini": "demo"}
"""What the page says of a provider, and the same of the model here."""


class LaptopShell(Shell):
    """The terminal of a user with the clone, Docker and kind."""

    def run(self, command: str) -> str:
        """Run a command of the page, or its replacement here."""
        words = command.split()
        if command == "make images":
            built_images()
        elif words[:2] == ["docker", "build"]:
            self._build(*words[2:])
        elif words[:3] == ["kind", "load", "docker-image"]:
            for image in words[3:]:
                self._load(image)
        elif words[0] == "cd":
            self.folder = (self.folder / words[1]).resolve()
        else:
            for provider, here in PROVIDER.items():
                command = command.replace(provider, here)
            return super().run(command)
        return ""

    def _build(self, *words: str) -> None:
        images = store(places())
        images.run("pull", "--quiet", f"docker-archive:{built_images()['tools']}")
        *options, folder = words
        images.run("build", "--pull-never", "--layers", "--network=host", *options, self.folder / folder)

    def _load(self, image: str) -> None:
        if image.startswith("dev.local/beckon-"):
            return  # the cluster has them
        tar = self.folder / "image.tar"
        store(places()).export(image, tar)
        load(places(), tar)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what the page's commands read of the clone."""
    (tmp_path / "charts").symlink_to(ROOT / "charts")
    return tmp_path


@pytest.fixture
def model(helm: Helm) -> Iterator[Kube]:
    """A model of the user's own in the cluster, which needs no key."""
    kube = helm.kube.within(NAMESPACE)
    helm.kube.run("create", "namespace", NAMESPACE)
    listens = ("--env=BECKON_HOST=0.0.0.0", "--env=BECKON_PORT=8084", "--port=8084", "--expose")
    program = ("--command", "--", "python", "-m", "beckon_demo")
    kube.run("run", MODEL, f"--image={reference('agent')}", *listens, *program)
    kube.wait(f"pod/{MODEL}", timeout=90)
    yield kube
    helm.remove()


def test_the_page_followed_by_hand_ends_with_an_answer_of_the_users_own_model(
    helm: Helm, model: Kube, clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("building images here needs root on Debian")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    answers: list[str] = []
    with ExitStack() as stack:
        shell = LaptopShell(helm, stack, clone)
        for command in page_commands():
            if command.startswith("kubectl get tools"):
                stack.callback(shell.run, f"kubectl delete --wait=false -f {shell.folder}/manifests")
                until(lambda: helm.kube.find("tool", "order.status"), what="the Tool")
                helm.kube.wait("tool/order.status", timeout=90)
            if command.startswith(ASK):
                answers.append(until(lambda: answer_of(shell, command), within=60, what=command))  # noqa: B023 called here
            else:
                shell.run(command)

    assert len(answers) == 2
    assert "demo-model" not in model.run("get", "pods", "--output=name")


def page_commands() -> list[str]:
    """Return the commands of the page but those that other tests run."""
    marked = [block for block in blocks(PAGE) if block.language == "console"]
    found = [command for block in marked for command, _ in block.commands]
    assert {*found} >= SET_UP | LOCAL_PLATFORM
    return [command for command in found if command not in SET_UP | LOCAL_PLATFORM]


def answer_of(shell: Shell, command: str) -> str:
    """Return what is printed if the tool was called, else nothing: a new tool takes a second to arrive."""
    printed = shell.run(command)
    return printed if "← order_status: " in printed and "packed" in printed else ""
