"""Measure what a start costs: `python -m bench.start [--quick]`, a table on standard output.

CPU is user and system time of the process and of the children that it waited for, so that of a question
without a platform includes the whole platform. Wall is the time until the process has ended. Each figure
is the least of all rounds, since other programs can only add to it; the rounds are interleaved.

Times depend on the machine, and on what else it does. So read the ratios: to an empty Python, and to the
import of FastAPI, which are measured in the same rounds. Nothing is judged.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.cluster.table import show
from bench.start.commands import COMMANDS, EMPTY, FASTAPI, Command, environment, free_port, platform, question

_ROUNDS = 7


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


def run(*, quick: bool) -> None:
    """Measure, and print the table."""
    peers = (EMPTY, FASTAPI)
    if quick:
        found = measure_all((*peers, *COMMANDS), 1)
    else:
        port = free_port()
        alone = question("beckon ask, which starts the platform", free_port())
        found = measure_all((*peers, *COMMANDS, alone), _ROUNDS)
        with platform(port):
            asked = question("beckon ask, of a platform that runs", port)
            found |= measure_all((asked,), _ROUNDS)
    empty, fastapi = (found[peer.name] for peer in peers)
    rows = [
        [
            name,
            f"{cost.cpu:.2f}",
            f"{cost.wall:.2f}",
            f"{cost.cpu / empty.cpu:.0f}",
            f"{cost.cpu / fastapi.cpu:.2f}",
        ]
        for name, cost in found.items()
    ]
    show("Starts", ["start of", "CPU s", "wall s", "CPU / empty", "CPU / FastAPI"], rows)


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.start", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument(
        "--quick", action="store_true", help="one round, and no platform: does it work at all"
    )
    run(quick=parser.parse_args().quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
