"""The outbox that `beckon up` gives a tool: an answer arrives although its tool was killed meanwhile."""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx

from beckon_runtime.process import listen
from tests.e2e.local_platform import LocalPlatform
from tests.e2e.sdk_tool import platform_with
from tests.e2e.test_long_tools import response
from tests.patience import PATIENCE, wait_until

SURVEY = '''
from pathlib import Path

from beckon_tools import Later, Ticket, tool


@tool(type="survey")
async def survey(topic: str, ticket: Ticket) -> Later:
    """Survey a topic."""
    await ticket.answer({"topic": topic}, sink=Path("sink").read_text())
    return Later()
'''


@contextmanager
def relay(port: int, broker: str) -> Iterator[list[str]]:
    """Pass events on to the Broker at this URL; give the ids of those that it took."""
    passed: list[str] = []

    class Relay(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.startswith(("ce-", "content-type"))
            }
            answer = httpx.post(broker, content=body, headers=headers, timeout=PATIENCE)
            passed.append(headers["ce-id"])
            self.send_response(answer.status_code)
            self.end_headers()

    with ThreadingHTTPServer(("127.0.0.1", port), Relay) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield passed
        server.shutdown()


def test_an_answer_without_a_broker_arrives_after_a_restart_of_its_tool(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    (tmp_path / "sink").write_text(f"http://127.0.0.1:{port}")
    with platform_with(tmp_path, SURVEY, "survey") as platform:
        begun = httpx.post(
            f"{platform.url}/v1/responses",
            json={"input": "Use survey: topic is rivers", "include": ["mcp_call"]},
            timeout=PATIENCE,
        ).json()
        assert begun["status"] == "in_progress"
        first = platform.tool_pid("source:survey")
        outbox = outbox_of(first)
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: restarted(platform, first))

        broker = re.search(r"broker\s+(http://\S+)", platform.text())
        assert broker is not None
        with relay(port, f"{broker[1]}/default/default") as passed:
            wait_until(lambda: response(platform, begun["id"])["status"] == "completed")

        ended = response(platform, begun["id"])
        assert outbox.stat().st_mode & 0o777 == 0o600

    assert ended["output"][0]["output"] == '{"topic":"rivers"}'
    assert len(set(passed)) == 1
    assert not outbox.exists()  # the runs were in memory, too


def outbox_of(pid: int) -> Path:
    """Return the path of the outbox in the environment of a process."""
    settings = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    (path,) = [one.partition(b"=")[2] for one in settings if one.startswith(b"BECKON_TOOLS_OUTBOX=")]
    return Path(path.decode())


def restarted(platform: LocalPlatform, first: int) -> bool:
    """Whether another process serves the tool now."""
    return platform.tool_pid("source:survey") not in (0, first)
