"""Starting long-running programs that outlive the command, and starting one of them again."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.cluster.machine import cgroups
from tests.cluster.machine.commands import ClusterError, wait_until
from tests.cluster.machine.places import Places

# The shell enters the control group before it becomes the program, so that no child of it escapes the count.
ENTER_AND_BECOME = 'echo $$ > "$0" && exec "$@"'


@dataclass(frozen=True)
class Daemon:
    """What is needed to end a daemon and to start it again."""

    pid: int
    command: list[str]


def start(places: Places, name: str, command: Sequence[str | Path]) -> None:
    """Start `command` as a process of its own session, logging to `logs/<name>.log`."""
    words = [str(word) for word in command]
    entrance = cgroups.create()
    with log(places, name).open("ab") as written:
        process = subprocess.Popen(
            ["/bin/sh", "-c", ENTER_AND_BECOME, str(entrance), *words],
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            cwd="/",
            start_new_session=True,
        )
    wait_until(
        lambda: cgroups.owns(process.pid) or process.poll() is not None,
        10,
        lambda: f"{name} does not get into its control group {entrance.parent}",
    )
    record(places, name).write_text(json.dumps(asdict(Daemon(process.pid, words))))


def stop(places: Places, name: str) -> None:
    """End one daemon and wait until it is gone; do nothing if it does not run.

    The API server would drain its connections for a minute or more, so patience is short.
    """
    pid = recorded(places, name).pid
    for ask, patience in ((signal.SIGTERM, 10), (signal.SIGKILL, 10)):
        if cgroups.owns(pid):
            os.kill(pid, ask)
        with suppress(ClusterError):
            wait_until(lambda: not alive(places, name), patience, lambda: "")
            return
    raise ClusterError(f"{name} (process {pid}) does not end")


def restart(places: Places, name: str) -> None:
    """End one daemon and start it again with the same command line."""
    command = recorded(places, name).command
    stop(places, name)
    start(places, name, command)


def alive(places: Places, name: str) -> bool:
    """Whether the daemon runs; one that ended but was not yet waited for does not."""
    pid = recorded(places, name).pid
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z" and cgroups.owns(pid)


def wait_until_up(places: Places, name: str, answers: Callable[[], bool], seconds: float) -> None:
    """Wait until a daemon `answers`; raise `ClusterError` with the end of its log if it does not."""

    def settled() -> bool:
        return answers() or not alive(places, name)

    wait_until(
        settled, seconds, lambda: f"{name} does not answer after {seconds:.0f} s; {last_words(places, name)}"
    )
    if not alive(places, name):
        raise ClusterError(f"{name} ended during its start; {last_words(places, name)}")


def names(places: Places) -> list[str]:
    """The daemons that were started."""
    return sorted(path.stem for path in (places.state / "daemons").glob("*.json"))


def log(places: Places, name: str) -> Path:
    """Where a daemon's output goes."""
    places.logs.mkdir(parents=True, exist_ok=True)
    return places.logs / f"{name}.log"


def record(places: Places, name: str) -> Path:
    """Where a daemon's process id and command line are kept."""
    folder = places.state / "daemons"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.json"


def recorded(places: Places, name: str) -> Daemon:
    """What was written at the daemon's start."""
    try:
        return Daemon(**json.loads(record(places, name).read_text()))
    except FileNotFoundError:
        raise ClusterError(f"there is no daemon {name}; these are: {', '.join(names(places))}") from None


def last_words(places: Places, name: str) -> str:
    """The last line of a daemon's log, and where the rest is."""
    lines = log(places, name).read_text(errors="replace").strip().splitlines() or ["(empty)"]
    return f"its last line: {lines[-1][:300]}; the rest: {log(places, name)}"
