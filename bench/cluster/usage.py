"""CPU time and memory of pods, read from the kernel of the node that runs them.

The numbers are exact and cost nothing, which those of a metrics server are not. So a
benchmark runs on the node itself, as root: that is the machine of `make cluster`.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

_CPU = Path("/sys/fs/cgroup/cpuacct")
_UNIFIED = Path("/sys/fs/cgroup")


class NotOnThisNode(Exception):
    """A pod has no control group on this machine."""


class Pods:
    """The control groups of some pods, measured as one."""

    def __init__(self, uids: Iterable[str]) -> None:
        """Find them; raise `NotOnThisNode` for a pod that runs elsewhere."""
        self._groups = [_find(uid) for uid in uids]

    def cpu_seconds(self) -> float:
        """Return the CPU time that all their processes used so far, ended ones included."""
        try:
            return sum(map(_cpu_seconds, self._groups))
        except FileNotFoundError as error:
            raise NotOnThisNode("a pod under measurement was replaced; start again") from error

    def rss_megabytes(self) -> float:
        """Return the resident memory of their processes, in units of 10^6 bytes."""
        return sum(_rss_bytes(pid) for group in self._groups for pid in _processes(group)) / 1e6


def _find(uid: str) -> Path:
    """Return the control group of a pod: of CPU accounting (version 1), or the unified one."""
    # The systemd driver writes the uid with underscores and adds .slice.
    names = (f"pod{uid}", f"pod{uid.replace('-', '_')}")
    root = _CPU if _CPU.is_dir() else _UNIFIED
    for folder, children, _ in os.walk(root):
        for child in children:
            if any(name in child for name in names):
                return Path(folder, child)
    raise NotOnThisNode(f"pod {uid} has no control group here; run this on the node, as root")


def _cpu_seconds(group: Path) -> float:
    nanoseconds = group / "cpuacct.usage"
    if nanoseconds.exists():
        return int(nanoseconds.read_text()) / 1e9
    usage = (line.split() for line in (group / "cpu.stat").read_text().splitlines())
    return int(dict(usage)["usage_usec"]) / 1e6


def _processes(group: Path) -> Iterator[int]:
    for folder, _, _ in os.walk(group):
        yield from map(int, Path(folder, "cgroup.procs").read_text().split())


def _rss_bytes(pid: int) -> int:
    try:
        pages = int(Path("/proc", str(pid), "statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
