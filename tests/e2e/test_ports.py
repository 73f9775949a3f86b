"""Every port that the local platform opens: no web page reaches it, and no flood of connections closes it."""

import contextlib
import resource
import socket
from pathlib import Path

import httpx
import pytest

from tests.e2e.conftest import EXAMPLES, Start
from tests.e2e.local_platform import LocalPlatform, descendants
from tests.patience import PATIENCE

LISTENS = "0A"
FILES = 150  # of each process
FLOOD = 200
HALF = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n"
CALL = {
    "ce-specversion": "1.0",
    "ce-id": "from-a-page",
    "ce-source": "/page",
    "ce-type": "calculator",
    "content-type": "application/json",
}


@pytest.fixture(scope="module")
def guarded(start_platform: Start) -> LocalPlatform:
    """A platform with short limits, each of its processes with few files."""
    platform = start_platform(
        EXAMPLES,
        BECKON_MAX_CONNECTIONS="60",
        BECKON_MAX_CONNECTIONS_PER_CLIENT="60",
        BECKON_RECEIVE_SECONDS="2",
    )
    for pid in descendants(platform.process.pid):
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (FILES, hard))
    return platform


def ports(platform: LocalPlatform) -> list[int]:
    """Return the ports on which processes of the platform listen, as the kernel knows them."""
    found = set()
    for pid in descendants(platform.process.pid):
        own = set()
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                own.add(str(file.readlink()))
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                field = line.split()
                if field[3] == LISTENS and f"socket:[{field[9]}]" in own:
                    found.add(int(field[1].rpartition(":")[2], 16))
    return sorted(found)


def test_every_port_of_the_platform_is_found(guarded: LocalPlatform) -> None:
    tools = {tool["name"] for tool in guarded.tools()}

    # The agent, the broker, both ports of the shim, the demo model; the shipped tools.
    assert guarded.port in ports(guarded)
    assert len(ports(guarded)) >= 5 + 5, (tools, guarded.text())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:{port}", "origin": "http://evil.example:{port}"}, 421),
        ({"host": "localhost.evil.example:{port}"}, 421),
        ({"host": "0.0.0.0:{port}"}, 421),
        ({"host": "localhost:{port}", "origin": "https://evil.example"}, 403),
        ({"host": "localhost:{port}", "origin": "null"}, 403),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else str(value),
)
def test_no_port_answers_a_web_page(guarded: LocalPlatform, headers: dict[str, str], status: int) -> None:
    with httpx.Client(timeout=PATIENCE) as http:
        for port in ports(guarded):
            given = {name: value.format(port=port) for name, value in headers.items()}
            url = f"http://127.0.0.1:{port}"
            answers = {
                "/healthz": http.get(url + "/healthz", headers=given),
                "/metrics": http.get(url + "/metrics", headers=given),
                "/": http.post(url, headers={**CALL, **given}, json={"expression": "1+1"}),
                "/default/default": http.post(url + "/default/default", headers={**CALL, **given}, json={}),
                "/replies": http.post(url + "/replies", headers={**CALL, **given}, json={}),
                "/v1/chat/completions": http.post(url + "/v1/chat/completions", headers=given, json={}),
            }
            for path, answer in answers.items():
                assert answer.status_code == status, (port, path, answer.text)
                assert answer.headers["content-type"] == "application/problem+json", (port, path)
                assert answer.json()["status"] == status


@pytest.mark.parametrize(
    "host", ["localhost:{port}", "127.0.0.1:{port}", "[::1]:{port}", "x.localhost:{port}"]
)
def test_every_port_answers_this_machine(guarded: LocalPlatform, host: str) -> None:
    with httpx.Client(timeout=PATIENCE) as http:
        for port in ports(guarded):
            own = {"host": host.format(port=port)}
            page = {**own, "origin": "http://" + own["host"]}
            for headers in (own, page):
                answer = http.get(f"http://127.0.0.1:{port}/healthz", headers=headers)
                assert answer.status_code == 200, (port, headers, answer.text)


def test_half_open_connections_close_no_port(guarded: LocalPlatform) -> None:
    for port in ports(guarded):
        with contextlib.ExitStack() as stack:
            for number in range(FLOOD):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
                if number % 2:
                    connection.sendall(HALF)

            assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=5).status_code == 200, port


def test_every_port_closes_a_request_that_does_not_arrive(guarded: LocalPlatform) -> None:
    with contextlib.ExitStack() as stack:
        opened = {
            port: stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            for port in ports(guarded)
        }
        for connection in opened.values():
            connection.settimeout(PATIENCE)
            connection.sendall(HALF)

        for port, connection in opened.items():
            assert connection.recv(12) == b"HTTP/1.1 408", port
