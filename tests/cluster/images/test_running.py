import signal
import socket
import subprocess
from collections.abc import Mapping

import httpx
import pytest

from supply_chain.sbom import IMAGES
from tests.cluster.images.containers import Image
from tests.cluster.machine.commands import wait_until
from tests.patience import PATIENCE

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

Images = Mapping[str, Image]

# Everything but the programs' entries, and what only Alembic can run: both run when they are imported.
EVERY_MODULE = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
names = [found.name for found in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
for name in names:
    if not name.endswith(("__main__", "migrations.env")):
        importlib.import_module(name)
print(len(names))
"""
WHAT_IT_MAY = """
import os, pathlib
status = pathlib.Path("/proc/self/status").read_text()
print(os.getuid(), os.getgid(), [line for line in status.splitlines() if line.startswith("CapEff")])
for place in ("/opt/beckon/x", "/tmp/x", "/x"):
    try:
        open(place, "w")
    except OSError as error:
        print(place, error.strerror)
"""
STARTS = 30


@pytest.mark.parametrize("image", IMAGES)
def test_every_module_loads_with_no_right_and_nothing_to_write_to(images: Images, image: str) -> None:
    loaded = images[image].run("python", "-c", EVERY_MODULE, f"beckon_{image}")

    assert loaded.stderr == ""
    assert int(loaded.stdout) > 1


def test_the_containers_of_these_tests_may_indeed_nothing(images: Images) -> None:
    assert images["shim"].run("python", "-c", WHAT_IT_MAY).stdout.splitlines() == [
        "65532 65532 ['CapEff:\\t0000000000000000']",
        "/opt/beckon/x Read-only file system",
        "/tmp/x Read-only file system",
        "/x Read-only file system",
    ]


def test_the_agent_answers_and_stops_when_it_has_to(images: Images) -> None:
    port = free_port()
    environment = {
        "BECKON_PORT": str(port),
        "BECKON_MANIFESTS": "/opt",
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    }

    with images["agent"].started(environment=environment) as agent:
        wait_for(f"http://127.0.0.1:{port}/healthz", agent)
        stop(agent)


def test_the_demo_model_is_in_the_agents_image(images: Images) -> None:
    port = free_port()
    command = ["python", "-m", "beckon_demo"]

    with images["agent"].started(command, {"BECKON_PORT": str(port)}) as model:
        wait_for(f"http://127.0.0.1:{port}/healthz", model)
        stop(model)


def test_the_shim_answers_and_stops_when_it_has_to(images: Images) -> None:
    port = free_port()
    environment = {
        "BECKON_PORT": str(port),
        "BECKON_SHIM_REPLY_PORT": "0",
        "BECKON_SHIM_KEYS": "00" * 16,
    }

    with images["shim"].started(environment=environment) as shim:
        wait_for(f"http://127.0.0.1:{port}/healthz", shim)
        stop(shim)


def test_the_broker_answers_and_stops_when_it_has_to(images: Images) -> None:
    port = free_port()
    environment = {
        "BECKON_PORT": str(port),
        "BECKON_MANIFESTS": "/opt",
        "BECKON_NATS_URL": "nats://127.0.0.1:9",
    }

    with images["broker"].started(environment=environment) as broker:
        wait_for(f"http://127.0.0.1:{port}/healthz", broker)
        stop(broker)


def test_a_tool_answers_and_stops_when_it_has_to(images: Images) -> None:
    port = free_port()
    command = ["python", "-m", "beckon_tools", "serve", "calculator", f"--port={port}"]

    with images["tools"].started(command) as tool:
        wait_for(f"http://127.0.0.1:{port}/healthz", tool)
        stop(tool)


def test_the_tools_image_can_speak(images: Images) -> None:
    speech = images["tools"].run("sh", "-c", "espeak-ng --stdout seven | head -c 4")

    assert speech.stdout == "RIFF"


@pytest.mark.parametrize(
    ("image", "setting"),
    [
        ("agent", "BECKON_PORT"),
        ("shim", "BECKON_PORT"),
        ("broker", "BECKON_PORT"),
        ("tools", "BECKON_TOOLS_PORT"),
    ],
)
def test_a_wrong_setting_is_reported_in_one_line(images: Images, image: str, setting: str) -> None:
    command = [*images[image].config["Entrypoint"], *(["serve", "calculator"] if image == "tools" else [])]

    with images[image].started(command, {setting: "many"}) as program:
        _, complaint = program.communicate(timeout=STARTS)

    assert program.returncode == 2
    assert setting in complaint
    assert len(complaint.splitlines()) == 1


def test_the_operator_says_in_one_line_that_there_is_no_cluster(images: Images) -> None:
    with images["operator"].started() as operator:
        _, complaint = operator.communicate(timeout=STARTS)

    assert operator.returncode == 2
    assert len(complaint.splitlines()) == 1


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    def answers() -> bool:
        if process.poll() is not None:
            _, complaint = process.communicate()
            pytest.fail(f"it stopped by itself: {complaint}")
        try:
            return httpx.get(url, timeout=PATIENCE).status_code == 200
        except httpx.TransportError:
            return False

    wait_until(answers, STARTS, lambda: f"no answer from {url}")


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    _, complaint = process.communicate(timeout=STARTS)
    assert process.returncode == 0, complaint
