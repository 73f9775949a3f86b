"""Debian's packages: containers, etcd, networking, and what makes a small Debian."""

import os
import shutil
from collections.abc import Sequence

from tests.cluster.machine.commands import ClusterError, Step, output, say, succeeds

NEEDED = (
    "busybox-static", "containerd", "containernetworking-plugins", "etcd-server", "iproute2", "mmdebstrap",
    "nftables", "runc",
)  # fmt: skip


def install(needed: Sequence[str] = NEEDED) -> None:
    """Install what is missing; do nothing, and need no network, when nothing is."""
    missing = [name for name in needed if not installed(name)]
    if not missing:
        return
    if not shutil.which("apt-get"):
        raise ClusterError(f"this machine has no apt-get; install these by hand: {' '.join(missing)}")
    say(f"packages: installing with apt-get: {' '.join(missing)}")
    with Step("packages: installed"):
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        output(["apt-get", "update", "-qq"], environment=quiet)
        output(["apt-get", "install", "-qq", "-y", "--no-install-recommends", *missing], environment=quiet)


def installed(package: str) -> bool:
    """Whether Debian's package manager has it ready."""
    # A package that another one only mentions is known, with the status `not-installed`.
    query = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return succeeds(query) and output(query) == "installed"


def require_root() -> None:
    """Containers, bridges and cgroups need the administrator."""
    if os.geteuid() != 0:
        raise ClusterError(
            'a cluster on this machine needs root: use `sudo env "PATH=$PATH" make cluster`, or a cluster '
            "that you have by setting KUBECONFIG"
        )
