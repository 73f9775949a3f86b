"""NetworkPolicies enforced on the node by kube-router, for the tests that need it.

The node's own network enforces none. kube-router writes rules for iptables and ipset, which the node has no
other use for; only its part for policies runs.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cluster.machine import packages, programs
from tests.cluster.machine.commands import output
from tests.cluster.machine.network import SYSCTL
from tests.cluster.machine.places import NODE, SERVICE_NETWORK, Places

ENGINE = "kube-router"
PACKAGES = ("ipset", "iptables")
# Pods of one node talk over a bridge, and its frames pass the rules only with this setting.
_BRIDGED = SYSCTL / "net/bridge/bridge-nf-call-iptables"
_STOP_SECONDS = 20
_RULE = re.compile(r"KUBE-(ROUTER|POD-FW|NWPLCY)-")
_SET = re.compile(r"(inet6:)?(KUBE-(SRC|DST)-|kube-router-)")


@contextmanager
def enforced(places: Places, log: Path) -> Iterator[None]:
    """Enforce the cluster's NetworkPolicies within the block; leave no rule behind."""
    packages.install(PACKAGES)
    program = programs.build(places, ENGINE) / ENGINE
    command = [
        *("setpriv", "--pdeathsig", "TERM"),  # it ends with the tests, however they end
        str(program),
        "--run-firewall=true",
        "--run-router=false",
        "--run-service-proxy=false",
        "--run-loadbalancer=false",
        f"--kubeconfig={places.kubeconfig}",
        f"--hostname-override={NODE}",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--iptables-sync-period=5s",
        "--health-port=0",
        "--metrics-port=0",
    ]
    if not _BRIDGED.exists():
        output(["modprobe", "br_netfilter"])
    _mark(places).write_text(_BRIDGED.read_text())
    with log.open("wb") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        try:
            _BRIDGED.write_text("1")
            yield
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
            process.kill()
            process.wait()
            clean(places)


def _mark(places: Places) -> Path:
    """The file that says that policies are enforced here; it has the setting's former value."""
    return places.state / "policies-enforced"


def clean(places: Places) -> None:
    """Remove what an enforcement has left, if there was one: on another machine the rules are others'."""
    mark = _mark(places)
    if mark.exists():
        _BRIDGED.write_text(mark.read_text())
        _remove_rules()
        mark.unlink()


def _remove_rules() -> None:
    """Remove the rules and sets of kube-router; those of others stay.

    Its own clean-up wants IPVS, which the node has not, and leaves them.
    """
    for family in filter(shutil.which, ("iptables", "ip6tables")):
        rules = output([f"{family}-save"]).splitlines()
        others = [rule for rule in rules if not _RULE.search(rule)]
        if len(others) < len(rules):
            output([f"{family}-restore"], stdin="\n".join([*others, ""]).encode())
    if shutil.which("ipset"):
        for name in output(["ipset", "list", "-name"]).split():
            if _SET.match(name):
                output(["ipset", "destroy", name])
