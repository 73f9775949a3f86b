"""Removing every trace of a cluster, also after its processes were killed without warning."""

import stat
from contextlib import suppress
from pathlib import Path

from tests.cluster.machine import cgroups, network, packages, policy_engine
from tests.cluster.machine.commands import ClusterError, Step, output, say
from tests.cluster.machine.locks import alone
from tests.cluster.machine.places import MARKER, Places

MOUNTS = Path("/proc/self/mounts")
# containerd 1.6 and the kubelet have these places built in; other users of the machine may be there as well.
SHIM_SOCKETS = Path("/run/containerd/s")
CNI_RESULTS = Path("/var/lib/cni/results")
LOG_LINKS = Path("/var/log/containers")
DEVICE_PLUGINS = Path("/var/lib/kubelet/device-plugins")
# Removed where they end up empty; the inner ones first.
SHARED_FOLDERS = (
    SHIM_SOCKETS, SHIM_SOCKETS.parent, CNI_RESULTS, CNI_RESULTS.parent, LOG_LINKS, DEVICE_PLUGINS,
    DEVICE_PLUGINS.parent,
)  # fmt: skip


def down(places: Places) -> None:
    """Remove the cluster, prove that nothing is left, and say so; `ClusterError` names what resists."""
    packages.require_root()
    with alone(places), Step("cluster: removed"):
        summary = clean(places)
        prove_clean(places)
    say(f"removed: {summary}")
    say("left: no process, mount, bridge, packet-filter table, control group or file but the cache")


def clean(places: Places) -> str:
    """Remove all that a cluster leaves, the holders before what they hold; return a summary."""
    killed = cgroups.kill_everything()
    mounts = unmount(places)
    links = network.remove()
    policy_engine.clean(places)
    groups = cgroups.remove()
    network.restore_settings(places)
    files = remove_strays(places)
    places.release()
    for folder in SHARED_FOLDERS:
        with suppress(OSError):  # it has files of others, or is not there
            folder.rmdir()
    return (
        f"{killed} processes, {mounts} mounts, {links} network links and tables, {groups} control groups, "
        f"{files} stray files"
    )


def traces(places: Places) -> list[str]:
    """What is left of a cluster on this machine, in words; empty means nothing."""
    found = {
        "processes": len(cgroups.processes()),
        "mounts": len(mounted_under(places.state)),
        "the pods' bridge": int(network.bridge_exists()),
        "packet-filter tables": len(network.left_tables()),
        "control groups": len([group for group in cgroups.groups() if group.exists()]),
        "stray files": len(strays(places)),
        f"the folder {places.state}": int((places.state / MARKER).exists()),
    }
    return [f"{what} ({count})" for what, count in found.items() if count]


def prove_clean(places: Places) -> None:
    """Raise `ClusterError` naming what is still there."""
    if left := traces(places):
        raise ClusterError(
            f"the cluster is not fully removed: {', '.join(left)}; run `make cluster-down` again"
        )


def unmount(places: Places) -> int:
    """Unmount everything below the state folder, the latest first; return how many mounts that were."""
    mounts = mounted_under(places.state)
    for mount in reversed(mounts):
        output(["umount", "--lazy", mount])
    return len(mounts)


def mounted_under(folder: Path) -> list[str]:
    """The mount points below `folder` in the order of mounting."""
    points = [line.split()[1].encode().decode("unicode_escape") for line in MOUNTS.read_text().splitlines()]
    return [point for point in points if point.startswith(f"{folder}/")]


def remove_strays(places: Places) -> int:
    """Remove our files from the places that others use too; return how many."""
    found = strays(places)
    for path in found:
        path.unlink()
    return len(found)


def strays(places: Places) -> list[Path]:
    """Our files outside the state folder: dead sockets, network results, links to logs."""
    links = [path for path in files(LOG_LINKS) if path.readlink().is_relative_to(places.state)]
    results = [path for path in files(CNI_RESULTS) if f"{places.state}/" in path.read_text()]
    listening = Path("/proc/net/unix").read_text()
    dead = [
        path
        for folder in (SHIM_SOCKETS, DEVICE_PLUGINS)
        for path in files(folder)
        if str(path) not in listening and (stat.S_ISSOCK(path.lstat().st_mode) or folder == DEVICE_PLUGINS)
    ]
    return links + results + dead


def files(folder: Path) -> list[Path]:
    """What a folder holds; nothing if it is not there."""
    return sorted(folder.iterdir()) if folder.is_dir() else []
