"""Which names the service answers for, and what it costs where nobody knocks."""

import subprocess
import sys

import pytest

from beckon_agent.faces.mcp.doors import Doors


@pytest.mark.parametrize(
    ("hosts", "host", "refused"),
    [
        ([], "localhost:8080", False),
        ([], "127.0.0.1", False),
        ([], "[::1]:8080", False),
        ([], "evil.example:8080", True),
        ([], "localhost.evil.example", True),
        ([], "", True),
        (["agent.example.com"], "Agent.example.com:443", False),
        (["agent.example.com"], "localhost", True),
    ],
)
def test_a_service_on_loopback_answers_for_its_own_names(hosts: list[str], host: str, refused: bool) -> None:
    closed = Doors.at("127.0.0.1", hosts).closed_for({"host": host})

    assert (closed is not None and closed.status == 421) == refused


def test_an_agent_without_mcp_clients_does_not_load_the_sdk() -> None:
    program = "import sys, beckon_agent.faces.mcp.mounting; sys.exit('mcp' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
