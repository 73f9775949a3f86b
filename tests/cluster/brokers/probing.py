"""`beckon probe broker` on a Broker in a cluster, from this machine."""

import json
import os
import shlex
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from beckon_cli.probe.report import Report, parse_report
from tests.cli.run_beckon import beckon
from tests.cluster.kube import Kube

_OPTIONS = ("--slow", "40", "--json")


def probe_cluster(kube: Kube, url: str, restart: str, name: str) -> Report:
    """Probe the Broker `default` of a namespace by the command; return its report.

    `restart` is a command that kills the Broker and waits for its successor. With PROBE_REPORTS, a folder,
    the document is left there as `name`.json, too.
    """
    words = ("probe", "broker", url, "--namespace", kube.namespace, *_OPTIONS, "--restart", restart)
    ended = beckon(*words, settings={"KUBECONFIG": str(kube.kubeconfig)}, seconds=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    if folder := os.environ.get("PROBE_REPORTS"):
        Path(folder, f"{name}.json").write_text(ended.stdout, "utf-8")
    return parse_report(json.loads(ended.stdout))


def find_ingress(kube: Kube, namespace: str, service: str) -> str:
    """Return the URL of `default` in a namespace by the IP of the ingress, whose name is unknown here."""
    address = str(kube.within(namespace).get("service", service)["spec"]["clusterIP"])
    try:
        socket.create_connection((address, 80), timeout=10).close()
    except OSError as error:
        reason = f"this machine does not reach the Services of the cluster: {error}"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return f"http://{address}/{kube.namespace}/default"


def make_kill_command(kube: Kube, namespace: str, selector: str, deployments: Sequence[str]) -> str:
    """Return a command that kills the selected pods, and waits until their Deployments have new ones."""
    kubectl = f"{shlex.quote(str(kube.kubectl))} --namespace {namespace}"
    kill = f"{kubectl} delete pod --selector {shlex.quote(selector)} --grace-period=0 --force >/dev/null 2>&1"
    waits = [f"{kubectl} rollout status {name} --timeout=120s >/dev/null" for name in deployments]
    return f"sh -c {shlex.quote(' && '.join([kill, *waits]))}"
