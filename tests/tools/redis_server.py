"""A Redis of the tests' own: in a folder of its own, reached by a socket there, stopped by its pid."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import wait_until

_CURE = "Redis is missing; on Debian: apt-get install redis-server"


@contextmanager
def redis_server() -> Iterator[str]:
    """Start a server that keeps nothing on the disk; give its address."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(_CURE)
        pytest.skip(_CURE)
    folder = Path(tempfile.mkdtemp(prefix="redis-", dir="/tmp"))
    socket = folder / "socket"
    options = ("--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=log)
    try:
        wait_until(socket.exists)
        yield f"unix://{socket}"
    finally:
        server.terminate()
        server.wait(20)
        shutil.rmtree(folder, ignore_errors=True)
