"""The cluster's own control groups: the exact list of its processes, whatever became of their parents."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.cluster.machine.commands import wait_until
from tests.cluster.machine.places import NAME

MOUNT = Path("/sys/fs/cgroup")
# Daemons go here; the kubelet puts its pods into `kubepods` beside it.
DAEMONS = f"{NAME}/daemons"


def unified() -> bool:
    """Whether the machine has version 2 alone (version 1 and the hybrid have a folder a controller)."""
    return (MOUNT / "cgroup.controllers").exists()


def hierarchies() -> list[Path]:
    """The root of every hierarchy that a pod may have a group in."""
    if unified():
        return [MOUNT]
    return sorted(path for path in MOUNT.iterdir() if (path / "cgroup.procs").exists())


def tracking() -> Path:
    """The one hierarchy that daemons are counted in; in version 1 their other groups stay as they were."""
    return MOUNT if unified() else MOUNT / "pids"


def create() -> Path:
    """Make the groups that the kubelet and the daemons expect; return where a daemon enters."""
    for root in hierarchies():
        (root / NAME).mkdir(exist_ok=True)
    entrance = tracking() / DAEMONS
    entrance.mkdir(exist_ok=True)
    return entrance / "cgroup.procs"


def groups() -> list[Path]:
    """Every group of the cluster, the innermost first."""
    tops = [root / NAME for root in hierarchies()]
    return sorted((path for top in tops for path in folders(top)), key=lambda path: -len(path.parts))


def folders(top: Path) -> Iterator[Path]:
    """A group and all below it; groups that vanish meanwhile are left out."""
    for name, _, _ in os.walk(top):
        yield Path(name)


def processes() -> set[int]:
    """The ids of every living process of the cluster: daemons, shims and containers."""
    found: set[int] = set()
    for group in groups():
        with suppress(OSError):
            found |= {int(pid) for pid in (group / "cgroup.procs").read_text().split()}
    return found


def owns(pid: int) -> bool:
    """Whether the process lives and is the cluster's: a reused id is not."""
    try:
        return f"/{NAME}/" in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False


def kill_everything() -> int:
    """Kill every process of the cluster and wait until all are gone; return how many there were."""
    killed: set[int] = set()

    def none_left() -> bool:
        alive = processes()
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        killed.update(alive)
        return not alive

    wait_until(
        none_left, 30, lambda: f"processes {sorted(processes())} survive SIGKILL; look at their state in ps"
    )
    return len(killed)


def remove() -> int:
    """Remove the emptied groups; return how many there were."""
    removed = 0

    def none_left() -> bool:
        nonlocal removed
        for group in groups():
            with suppress(OSError):
                group.rmdir()
                removed += 1
        return not groups()

    wait_until(none_left, 30, lambda: f"control groups cannot be removed: {groups()[0]}")
    return removed
