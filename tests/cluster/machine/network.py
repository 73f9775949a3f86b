"""The node's network: a bridge for the pods, translation of their addresses, kernel settings."""

import json
from contextlib import suppress
from pathlib import Path

from tests.cluster.machine.commands import ClusterError, output, succeeds
from tests.cluster.machine.places import BRIDGE, NAME, NODE_ADDRESS, POD_NETWORK, SERVICE_NETWORK, Places

# kube-proxy's table has the same name on every machine.
NFT_TABLES = (("ip", NAME), ("ip", "kube-proxy"), ("ip6", "kube-proxy"))

# Changed by us (forwarding) or by the kubelet; they get their old values back with the cluster's end.
SETTINGS = (
    "net/ipv4/ip_forward", "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
)  # fmt: skip
SYSCTL = Path("/proc/sys")


def create(places: Places) -> None:
    """Make the bridge (its address is the node's) and let pods out under the machine's address."""
    remember_settings(places)
    (SYSCTL / "net/ipv4/ip_forward").write_text("1")
    refuse_overlap()
    prefix = POD_NETWORK.partition("/")[2]
    output(["ip", "link", "add", BRIDGE, "type", "bridge"])
    output(["ip", "address", "add", f"{NODE_ADDRESS}/{prefix}", "dev", BRIDGE])
    output(["ip", "link", "set", BRIDGE, "up"])
    # Without any route the kernel gives up on a Service's address before kube-proxy's rules can change it.
    output(["ip", "route", "add", SERVICE_NETWORK, "dev", BRIDGE])
    rules = (
        f"add table ip {NAME}\n"
        f"add chain ip {NAME} outward {{ type nat hook postrouting priority srcnat; }}\n"
        f"add rule ip {NAME} outward ip saddr {POD_NETWORK} oifname != {BRIDGE} masquerade\n"
    )
    output(["nft", "-f", "-"], stdin=rules.encode())


def refuse_overlap() -> None:
    """A machine that already uses the pods' addresses would lose its own connections."""
    for network in (POD_NETWORK, SERVICE_NETWORK):
        if output(["ip", "route", "show", "root", network]).strip():
            raise ClusterError(
                f"this machine already routes {network}, which the cluster needs: end the network that has "
                "it (see `ip route`)"
            )


def configure_pods(places: Places) -> Path:
    """Write the container network's configuration; return its folder."""
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(places.state / "addresses"),
            "ranges": [[{"subnet": POD_NETWORK, "gateway": NODE_ADDRESS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    folder = places.state / "cni"
    folder.mkdir()
    (folder / "10-bridge.conflist").write_text(
        json.dumps({"cniVersion": "0.4.0", "name": NAME, "plugins": [bridge]})
    )
    return folder


def bridge_exists() -> bool:
    """Whether the bridge of this or of a former cluster is there."""
    return Path(f"/sys/class/net/{BRIDGE}").exists()


def left_tables() -> list[tuple[str, str]]:
    """The packet-filter tables that are still there."""
    return [table for table in NFT_TABLES if succeeds(["nft", "list", "table", *table])]


def remove() -> int:
    """Remove bridge and tables; return how many things that were."""
    removed = 0
    if bridge_exists():
        output(["ip", "link", "delete", BRIDGE])
        removed += 1
    for table in left_tables():
        output(["nft", "delete", "table", *table])
        removed += 1
    return removed


def remember_settings(places: Places) -> None:
    """Write down the kernel settings as they are before the cluster."""
    found = {}
    for name in SETTINGS:
        with suppress(OSError):
            found[name] = (SYSCTL / name).read_text().strip()
    (places.state / "settings.json").write_text(json.dumps(found))


def restore_settings(places: Places) -> None:
    """Give the kernel settings their former values."""
    with suppress(FileNotFoundError):
        for name, value in json.loads((places.state / "settings.json").read_text()).items():
            with suppress(OSError):  # a container may lack the right, and then nothing was changed either
                (SYSCTL / name).write_text(value)
