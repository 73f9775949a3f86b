"""Servers until they are ready: time, processor time, processes and memory."""

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.peer_environment import PeerEnvironment
from bench.start.commands import environment, free_port

_HERE = Path(__file__).parent
_START_SECONDS = 60.0
_SETTLE_SECONDS = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")

ADK = PeerEnvironment(_HERE / "requirements.txt")


@dataclass(frozen=True, slots=True)
class Server:
    """A command that serves until it is stopped; `ready` is the URL that answers 200 then.

    Without a URL it is ready when it prints `banner`.
    """

    name: str
    command: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    ready: str = ""
    banner: str = ""


@dataclass(frozen=True, slots=True)
class Footprint:
    """The start of a server: seconds until ready, CPU seconds until then; what it holds a second later."""

    cpu: float
    wall: float
    processes: int
    pss_mebibytes: float

    def least(self, other: "Footprint") -> "Footprint":
        """Return the smaller of each figure."""
        return Footprint(
            min(self.cpu, other.cpu),
            min(self.wall, other.wall),
            min(self.processes, other.processes),
            min(self.pss_mebibytes, other.pss_mebibytes),
        )


def local_platform() -> Server:
    """Return `beckon up` with the examples: broker, shim, agent, demo model, adapter and seven tools."""
    settings = {"BECKON_PORT": str(free_port())}
    return Server("beckon up", (sys.executable, "-m", "beckon_cli", "up"), settings, banner="Ctrl-C stops")


def adk() -> Server:
    """Return the peer: an agent with one function as its tool, in one process."""
    port = free_port()
    command = (ADK.folder / "bin" / "adk", "api_server", "--port", port, _HERE / "peer_agents")
    name = f"adk api_server ({ADK.versions['google-adk']})"
    return Server(name, tuple(map(str, command)), ready=f"http://127.0.0.1:{port}/list-apps")


def images(kubeconfig: Path) -> list[Server]:
    """Return what the images start, in a cluster without objects."""
    keys = secrets.token_hex(32)
    agent, shim, replies, operator = (str(free_port()) for _ in range(4))
    settings = {
        "agent": {
            "BECKON_PORT": agent,
            "BECKON_NAMESPACES": "*",
            "BECKON_SHIM_KEYS": keys,
            "BECKON_SHIM_URL": f"http://127.0.0.1:{shim}",
        },
        "shim": {
            "BECKON_PORT": shim,
            "BECKON_SHIM_REPLY_PORT": replies,
            "BECKON_SHIM_BROKERS": "cluster",
            "BECKON_SHIM_KEYS": keys,
        },
        "operator": {"BECKON_PORT": operator},
    }
    ports = {"agent": agent, "shim": shim, "operator": operator}
    return [
        Server(
            f"image: {room}",
            (sys.executable, "-m", f"beckon_{room}"),
            {"KUBECONFIG": str(kubeconfig), "BECKON_LOG_LEVEL": "error", **given},
            ready=f"http://127.0.0.1:{ports[room]}/readyz",
        )
        for room, given in settings.items()
    ]


def measure_server(server: Server) -> Footprint:
    """Start a server, measure it, and stop it; raise `RuntimeError` where it does not get ready."""
    begun = time.monotonic()
    with _started(server) as (process, printed):
        while not _is_ready(server, printed):
            if process.poll() is not None or time.monotonic() - begun > _START_SECONDS:
                raise RuntimeError(f"{server.name} did not get ready: {printed.read_text()[-500:]}")
            time.sleep(0.01)
        wall = time.monotonic() - begun
        cpu = sum(_cpu_seconds(pid) for pid in _tree(process.pid))
        time.sleep(_SETTLE_SECONDS)
        pids = _tree(process.pid)
        return Footprint(cpu, wall, len(pids), sum(map(_pss_mebibytes, pids)))


@contextlib.contextmanager
def _started(server: Server) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    with tempfile.TemporaryDirectory() as folder:
        printed = Path(folder) / "output"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                server.command,
                env=environment(server.settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            yield process, printed
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _is_ready(server: Server, printed: Path) -> bool:
    if not server.ready:
        return server.banner in printed.read_text(encoding="utf-8")
    try:
        with urllib.request.urlopen(server.ready, timeout=2) as answer:  # noqa: S310  # an address of our own
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _tree(root: int) -> list[int]:
    """Return a process and all that descend from it."""
    found = [root]
    for pid in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def _cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process, and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


def _pss_mebibytes(pid: int) -> float:
    """Return the memory of a process, shared pages divided among those that share them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
