"""Measure what a start costs: `python -m bench.start [--quick]`, two tables on standard output.

CPU is user and system time of the process and of its children, so that of a question without a platform
includes the whole platform. Wall is the time until the process has ended, or until the server is ready.
PSS is the memory a second later, with shared pages divided among those that share them. Each figure is the
least of all rounds, since other programs can only add to it; the rounds are interleaved.

The peer is the local server of Google's Agent Development Kit with one agent and one function as its tool,
in an environment of its own. What the images start is started beside an API server without objects.

Times depend on the machine, and on what else it does. So read the ratios: to an empty Python, and to the
import of FastAPI, which are measured in the same run. Nothing is judged.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.table import show
from bench.peer_environment import NoEnvironment
from bench.start.api_server import api_server
from bench.start.commands import COMMANDS, EMPTY, FASTAPI, Command, environment, free_port, platform, question
from bench.start.servers import ADK, Footprint, adk, images, local_platform, measure_server

_ROUNDS = 7
_SERVER_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class Cost:
    """What one start took, in seconds."""

    cpu: float
    wall: float

    def least(self, other: "Cost") -> "Cost":
        """Return the smaller of each figure."""
        return Cost(min(self.cpu, other.cpu), min(self.wall, other.wall))


def measure(command: Command) -> Cost:
    """Run a command to its end; raise `RuntimeError` where it fails."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *command.arguments],
        env=environment(command.settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command.name} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, wall)


def measure_all(commands: Sequence[Command], rounds: int) -> dict[str, Cost]:
    """Measure each command once in each round, after a round that only warms up; return the least."""
    for command in commands:
        measure(command)
    found = {command.name: measure(command) for command in commands}
    for _ in range(rounds - 1):
        for command in commands:
            found[command.name] = found[command.name].least(measure(command))
    return found


def measure_commands(*, quick: bool) -> dict[str, Cost]:
    """Measure what runs to its end; with `quick` no question, which needs a platform."""
    peers = (EMPTY, FASTAPI)
    if quick:
        return measure_all((*peers, *COMMANDS), 1)
    alone = question("beckon ask, which starts the platform", free_port())
    found = measure_all((*peers, *COMMANDS, alone), _ROUNDS)
    port = free_port()
    with platform(port):
        return found | measure_all((question("beckon ask, of a platform that runs", port),), _ROUNDS)


def measure_servers(*, quick: bool) -> dict[str, Footprint]:
    """Measure what serves, in interleaved rounds; the peer is left out if it is not installed."""
    found: dict[str, Footprint] = {}
    with tempfile.TemporaryDirectory() as folder, api_server(Path(folder)) as kubeconfig:
        for number in range(1 if quick else 1 + _SERVER_ROUNDS):
            servers = [local_platform(), *([adk()] if ADK.is_made() else []), *images(kubeconfig)]
            for server in servers:
                footprint = measure_server(server)
                if number or quick:  # the first round only warms up
                    found[server.name] = footprint.least(found.get(server.name, footprint))
    return found


def run(*, quick: bool) -> None:
    """Measure, and print the tables."""
    if not quick and not ADK.is_made():
        sys.stderr.write("making the environment of the peer\n")
        ADK.make()
    commands = measure_commands(quick=quick)
    servers = measure_servers(quick=quick)
    empty, fastapi = commands[EMPTY.name].cpu, commands[FASTAPI.name].cpu
    rows = [
        [name, f"{one.cpu:.2f}", f"{one.wall:.2f}", f"{one.cpu / empty:.0f}", f"{one.cpu / fastapi:.2f}"]
        for name, one in commands.items()
    ]
    show("Commands", ["to the end of", "CPU s", "wall s", "CPU / empty", "CPU / FastAPI"], rows)
    rows = [
        [
            name,
            f"{one.cpu:.2f}",
            f"{one.wall:.2f}",
            f"{one.cpu / fastapi:.2f}",
            str(one.processes),
            f"{one.pss_mebibytes:.0f}",
        ]
        for name, one in servers.items()
    ]
    columns = ["until ready", "CPU s", "wall s", "CPU / FastAPI", "processes", "PSS MiB"]
    show("Servers", columns, rows)


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.start", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round, and no question: does it work at all"
    )
    given = parser.parse_args()
    try:
        run(quick=given.quick)
    except NoEnvironment as error:
        sys.stderr.write(f"the environment of the peer cannot be made: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
