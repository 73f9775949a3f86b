"""Operators of the tests' own, with nothing beside them that would write the same Tools."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.kube import Kube, until, wait_until_established
from tests.cluster.operator.account import Account, lend, take_back
from tests.cluster.platform import NAMESPACE, ROOT


@pytest.fixture(scope="package", autouse=True)
def _alone(kube: Kube) -> Iterator[None]:
    """Have the installed operator, if there is one, stand aside."""
    installed = kube.within(NAMESPACE)
    found = installed.find("deployment", "beckon-operator")
    if found is None:
        kube.run("apply", "-f", str(ROOT / "deploy" / "200-crd-tool.yaml"))
        wait_until_established(kube, "tools.beckon.dev")
        yield
        return
    installed.run("scale", "deployment/beckon-operator", "--replicas=0")
    pods = "app.kubernetes.io/component=operator"
    until(lambda: not installed.list_objects("pods", pods), within=60, what="an operator that is gone")
    yield
    installed.run("scale", "deployment/beckon-operator", f"--replicas={found['spec']['replicas']}")
    installed.run("rollout", "status", "deployment/beckon-operator", "--timeout=120s")


@pytest.fixture(scope="package")
def account(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """The account that the operators of these tests have, in a namespace for their Lease."""
    name = f"t-op-{secrets.token_hex(4)}"
    kube.run("create", "namespace", name)
    home = kube.within(name)
    folder: Path = tmp_path_factory.mktemp("operator")
    try:
        yield lend(home, folder)
    finally:
        take_back(home)
        kube.run("delete", "namespace", name, "--wait=false")
