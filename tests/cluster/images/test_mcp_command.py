"""The image that `beckon import mcp --into` has built, run as a strict cluster would run it."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from beckon_contract.cloudevents.events import to_binary
from tests.cluster.images.containers import Image, opened
from tests.cluster.images.mcp_command import SECRET, SERVER, built, imported
from tests.cluster.images.store import store
from tests.cluster.images.test_running import free_port, stop, wait_for
from tests.cluster.machine.places import places
from tests.tools.serving import call

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def python_server(tars: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """A server that is a script of Python."""
    where = tmp_path_factory.mktemp("python")
    project = imported(where / "wild", "--name", "wild", "--", sys.executable, str(SERVER), secret=SECRET)
    with opened(
        store(places()), built(project, tars["tools"], "dev.local/mcp-wild:0.1.0", where / "i.tar")
    ) as image:
        yield image


@pytest.fixture(scope="module")
def node_server(tars: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """A server of npm, as it is published."""
    where = tmp_path_factory.mktemp("node")
    words = ("--name", "everything", "--", "npx", "-y", "@modelcontextprotocol/server-everything")
    project = imported(where / "everything", *words)
    tar = built(project, tars["tools"], "dev.local/mcp-everything:0.1.0", where / "i.tar")
    with opened(store(places()), tar) as image:
        yield image


@contextmanager
def running(image: Image, **environment: str) -> Iterator[str]:
    """Run the image's own command until it is ready; give its address, and end it as Kubernetes does."""
    port = free_port()
    given = {"PORT": str(port), "HOME": "/tmp", **environment}
    whole = replace(
        image, config={**image.config, "Entrypoint": [*image.config["Entrypoint"], *image.config["Cmd"]]}
    )
    with whole.started(environment=given) as process:
        wait_for(f"http://127.0.0.1:{port}/readyz", process)
        yield f"http://127.0.0.1:{port}/"
        stop(process)


def call_tool(url: str, kind: str, arguments: object, id: str) -> object:  # noqa: A002 - the attribute's name
    headers, body = to_binary(call(kind, arguments, id=id))
    answer = httpx.post(url, headers=[*headers, ("kn-namespace", "shop")], content=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_server_of_python_runs_in_its_image_with_no_right_and_ends_when_it_has_to(
    python_server: Image,
) -> None:
    with running(python_server, SECRET=SECRET) as url:
        first = call_tool(url, "wild.process", {}, "1")
        second = call_tool(url, "wild.process", {}, "2")
        shown = call_tool(url, "wild.secret", {}, "3")

    assert first == second
    assert shown == "it is [hidden]"


def test_a_server_of_npm_runs_in_its_image_with_no_right_and_nothing_of_npm(node_server: Image) -> None:
    with running(node_server) as url:
        assert call_tool(url, "everything.echo", {"message": "hello"}, "1") == "Echo: hello"

    assert not (node_server.root / "usr/local/bin/npm").exists()
