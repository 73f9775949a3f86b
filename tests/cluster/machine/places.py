"""Where the cluster keeps its things, and the fixed addresses inside it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.machine.commands import ClusterError

STATE_VARIABLE = "BECKON_CLUSTER_DIR"

# The name of everything the machine shows of the cluster: bridge, nft table, CNI network, cgroup.
NAME = "beckon-cluster"
BRIDGE = "beckon0"
NODE = "node1"

# The node has the bridge's address, so the API server and the kubelet are not seen from outside the machine.
NODE_ADDRESS = "10.244.0.1"
POD_NETWORK = "10.244.0.0/24"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
DNS_ADDRESS = "10.96.0.10"
API_PORT = 6443
# Not etcd's usual port, as Debian starts an etcd of its own where systemd runs; and below those of the tests
# that run beside a cluster.
ETCD_PORT = 10_379

# Points to the state folder from the first trace of a cluster to its last.
POINTER = Path("/run") / NAME
# In the state folder: only a folder with this file is ever removed.
MARKER = "this-folder-is-removed-by-make-cluster-down"

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"


@dataclass(frozen=True)
class Places:
    """The folders of one cluster.

    `cache` outlives the cluster (built programs, the base of the images); `state` is removed with it.
    """

    cache: Path
    state: Path

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "kubeconfig"

    @property
    def certificates(self) -> Path:
        """Keys and certificates; readable by root alone."""
        return self.state / "certificates"

    @property
    def logs(self) -> Path:
        """One file a daemon, and `audit.log` of the API server."""
        return self.state / "logs"

    @property
    def volumes(self) -> Path:
        """The folders behind the volumes of pods."""
        return self.state / "volumes"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.state / "containerd" / "containerd.sock"

    @property
    def ready(self) -> Path:
        """Written when the start is complete; holds the versions to print."""
        return self.state / "ready"

    def program(self, product: str, name: str) -> Path:
        """A program built by `programs.build`."""
        return self.cache / "bin" / product / name

    @property
    def kubectl(self) -> Path:
        """The cluster's own kubectl."""
        return self.program("kubernetes", "kubectl")

    @property
    def helm(self) -> Path:
        """Helm, built like the rest."""
        return self.program("helm", "helm")

    def claim(self) -> None:
        """Make the state folder; refuse one that holds other files."""
        if self.state.exists() and any(self.state.iterdir()):
            raise ClusterError(f"{self.state} holds other files: name an empty folder in {STATE_VARIABLE}")
        self.state.mkdir(parents=True, exist_ok=True)
        (self.state / MARKER).touch()
        POINTER.unlink(missing_ok=True)
        POINTER.symlink_to(self.state)

    def release(self) -> None:
        """Remove the state folder, if it is one that `claim` made."""
        if (self.state / MARKER).exists():
            shutil.rmtree(self.state)
        POINTER.unlink(missing_ok=True)


def places() -> Places:
    """The folders of the cluster that runs; else those that the environment asks for, or the usual ones.

    Raises `ClusterError` when the environment names another folder than that of the cluster that runs.
    """
    cache = Path.home() / ".cache" / "beckon" / "cluster"
    wanted = os.environ.get(STATE_VARIABLE)
    used = POINTER.readlink() if POINTER.is_symlink() else None
    if used and wanted and Path(wanted).absolute() != used:
        raise ClusterError(
            f"a cluster lives in {used} and there can be one a machine: unset {STATE_VARIABLE}, or run "
            "`make cluster-down` without it first"
        )
    return Places(cache, used or Path(wanted or cache / "run").absolute())
