"""The services of others as processes, and the platform with a tool for each."""

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.e2e.local_platform import LocalPlatform, clean_environment, port_range
from tests.patience import wait_until
from tests.services.kinds import KINDS, Kind

HERE = Path(__file__).parent
SERVICES = Path(os.environ.get("BECKON_TEST_SERVICES", "/nowhere"))
PYTHON = SERVICES / "python" / "bin" / "python"
PROGRAM = SERVICES / "services-in-go"


def commands() -> dict[str, list[Path | str]]:
    """Return the command of each service that can be started here."""
    found: dict[str, list[Path | str]] = {
        "fastapi": [PYTHON, HERE / "python" / "with_fastapi.py"],
        "func": [PYTHON, HERE / "python" / "with_func.py"],
        "node": [shutil.which("node") or "node", SERVICES / "node" / "services.mjs"],
    }
    return found | ({"go": [PROGRAM]} if PROGRAM.is_file() else {})


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The addresses of the running services, by the name of each."""
    if not SERVICES.is_dir():
        pytest.skip("tests/services/services.sh brings the SDKs, and runs these tests")
    first, found = port_range(), dict[str, str]()
    with ExitStack() as running:
        for number, (name, command) in enumerate(commands().items()):
            port = first + number
            output = running.enter_context((tmp_path_factory.mktemp(name) / "output.txt").open("wb"))
            process = subprocess.Popen(
                command,
                env=clean_environment({"PORT": str(port), "LISTEN_ADDRESS": f"127.0.0.1:{port}"}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            running.callback(process.wait)
            running.callback(process.terminate)
            found[name] = f"http://127.0.0.1:{port}"
            wait_until(partial(listens, port))
        yield found


def listens(port: int) -> bool:
    """Whether a server listens at a port."""
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except ConnectionRefusedError:
        return False
    return True


@pytest.fixture(scope="session")
def platform(
    addresses: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalPlatform]:
    """A platform whose tools are these services, each with two manifests and nothing else."""
    work = tmp_path_factory.mktemp("services")
    manifests = work / "manifests"
    manifests.mkdir()
    served = [kind for kind in KINDS if kind.service in addresses]
    for kind in served:
        documents = [event_type(kind), trigger(kind, addresses[kind.service])]
        (manifests / f"{kind.name}.yaml").write_text(yaml.safe_dump_all(documents))
    running = LocalPlatform(manifests, work, {})
    try:
        running.wait_until_ready()
        wait_until(lambda: len(running.tool_names()) == len(served))
        yield running
    finally:
        running.stop()


def event_type(kind: Kind) -> dict[str, object]:
    """Return the EventType of a kind of service."""
    parameters = {"name": {"type": "string"}, "required": ["name"]}
    annotations = {"beckon.dev/parameters": json.dumps(parameters), "beckon.dev/timeout": "10s"}
    if not kind.answers_event:
        annotations["beckon.dev/reply"] = "any"
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {"name": kind.name, "annotations": annotations},
        "spec": {"type": f"greet.{kind.name}", "description": "Greet a person."},
    }


def trigger(kind: Kind, address: str) -> dict[str, object]:
    """Return the Trigger that leads the calls to the service."""
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": kind.name},
        "spec": {
            "broker": "default",
            "filter": {"attributes": {"type": f"greet.{kind.name}"}},
            "subscriber": {"uri": f"{address}/{kind.path}"},
        },
    }
