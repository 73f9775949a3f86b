"""Beckon's own kinds of resources, a namespace of two, and a model server."""

import secrets
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.agent.model_server import ModelServer, model_server
from tests.cluster.agent.service import ROOT
from tests.cluster.kube import Kube, wait_until_established


@pytest.fixture(scope="session")
def definitions(kube: Kube) -> None:
    """The resource definitions, those of `deploy/` where no installation has brought its own."""
    for number, name in ((200, "tool"), (201, "agent")):
        if kube.find("crd", f"{name}s.beckon.dev") is None:
            kube.apply(ROOT / "deploy" / f"{number}-crd-{name}.yaml")
        wait_until_established(kube, f"{name}s.beckon.dev")


@pytest.fixture
def home(kube: Kube, definitions: None) -> Iterator[Kube]:
    """A fresh namespace for the service's own agent."""
    yield from _namespace(kube)


@pytest.fixture
def team(kube: Kube, definitions: None) -> Iterator[Kube]:
    """A fresh namespace of a team."""
    yield from _namespace(kube)


@pytest.fixture
async def model() -> AsyncIterator[ModelServer]:
    """A model server that takes any key."""
    async with model_server() as running:
        yield running


def _namespace(kube: Kube) -> Iterator[Kube]:
    name = f"t-ag-{secrets.token_hex(4)}"
    kube.run("create", "namespace", name)
    yield kube.within(name)
    kube.run("delete", "namespace", name, "--wait=false")
