"""What is restarted under Beckon's feet: the API server, and with it every watch."""

import subprocess
import sys

import pytest

from tests.cluster.kube import condition, until
from tests.cluster.machine.places import places
from tests.cluster.platform import ROOT, Platform
from tests.cluster.serving.services import Service


def test_changes_are_seen_after_a_restart_of_the_api_server(platform: Platform) -> None:
    if places().kubeconfig != platform.kube.kubeconfig:
        pytest.skip("the API server of a cluster elsewhere is not ours to restart")
    kube, before, after = platform.kube, Service("before"), Service("after")
    kube.apply(before.event_type())
    until(lambda: reason(platform, "before") == "NoTrigger", what="the Tool before")

    command = [sys.executable, "-m", "tests.cluster.machine", "restart", "kube-apiserver"]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    until(lambda: kube.attempt("get", "--raw", "/readyz").returncode == 0, within=60, what="the API server")
    kube.run("delete", "eventtype", "before")
    kube.apply(after.event_type())

    try:
        until(lambda: reason(platform, "after") == "NoTrigger", within=60, what="the Tool after")
        until(lambda: kube.find("tool", "before") is None, within=60, what="the end of the first Tool")
        until(
            lambda: any(found["event_type"] == "after" for found in platform.tools()["refused"]),
            within=60,
            what="the agent's view of it",
        )
    finally:
        kube.run("delete", "--wait=false", "eventtype", "after")


def reason(platform: Platform, name: str) -> str:
    return condition(platform.kube.find("tool", name), "Ready")[1]
