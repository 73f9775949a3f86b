"""A RabbitMQ of the tests' own: its own folder, free ports of loopback, ended by its group."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e.local_platform import port_range
from tests.patience import wait_until

# Debian's own `rabbitmq-server` changes to a user of its own; this is the program behind it.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_CURE = "RabbitMQ is missing; on Debian: apt-get install rabbitmq-server"


@contextmanager
def rabbitmq_server() -> Iterator[str]:
    """Start a server; give its address."""
    if not PROGRAM.exists():
        if os.environ.get("CI"):
            pytest.fail(_CURE)
        pytest.skip(_CURE)
    folder = Path(tempfile.mkdtemp(prefix="rabbitmq-", dir="/tmp"))
    first = port_range()
    port, distribution, mapper = first, first + 1, first + 2
    environment = {
        **os.environ,
        "HOME": str(folder),  # the cookie
        "RABBITMQ_NODENAME": f"beckon-{port}@localhost",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_DIST_PORT": str(distribution),
        "ERL_EPMD_PORT": str(mapper),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen(
            [PROGRAM], cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        wait_until(lambda: "completed with" in (folder / "output").read_text("utf-8", "replace"))
        yield f"amqp://guest:guest@127.0.0.1:{port}/"
    finally:
        _end(server, environment)
        shutil.rmtree(folder, ignore_errors=True)


def _end(server: "subprocess.Popen[bytes]", environment: Mapping[str, str]) -> None:
    """End the node, and the port mapper that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGKILL)
    server.wait(20)
    wait_until(lambda: _end_mapper(environment))


def _end_mapper(environment: Mapping[str, str]) -> bool:
    """End the port mapper; it refuses as long as it has not noticed that the node is gone."""
    command = ["epmd", "-kill"]
    ended = subprocess.run(command, env=environment, capture_output=True, check=False, timeout=20)
    return b"not allowed" not in ended.stdout + ended.stderr
