"""containerd with folders of its own, beside whatever else the machine runs."""

from pathlib import Path

from tests.cluster.machine import daemons
from tests.cluster.machine.commands import succeeds
from tests.cluster.machine.places import Places

PAUSE_IMAGE = "dev.local/pause:1"
CNI_PLUGINS = "/usr/lib/cni"

# restrict_oom_score_adj: where root may not lower the score (containers, small VMs) no pod would start.
CONFIGURATION = """\
version = 2
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]

[grpc]
address = "{socket}"

[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{pause}"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "{plugins}"
conf_dir = "{network}"

[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
Root = "{folder}/runc"
SystemdCgroup = false
"""


def start(places: Places, network: Path) -> None:
    """Start containerd and wait until it answers; `network` holds the container network's configuration."""
    folder = places.containerd_socket.parent
    folder.mkdir()
    (folder / "config.toml").write_text(
        CONFIGURATION.format(
            folder=folder,
            socket=places.containerd_socket,
            pause=PAUSE_IMAGE,
            plugins=CNI_PLUGINS,
            network=network,
        )
    )
    daemons.start(places, "containerd", ["containerd", "--config", folder / "config.toml"])
    daemons.wait_until_up(places, "containerd", lambda: succeeds([*ctr(places), "version"]), 30)


def ctr(places: Places) -> list[str | Path]:
    """containerd's own client, in the namespace that the kubelet sees."""
    return ["ctr", "--address", places.containerd_socket, "--namespace", "k8s.io"]
