"""One webhook for all tests, each of which leaves it working."""

import secrets
from collections.abc import Iterator

import pytest

from tests.cluster.kube import Kube
from tests.cluster.webhook.hook import Hook, deployed


@pytest.fixture(scope="package")
def hook(kube: Kube) -> Iterator[Hook]:
    """A webhook that looks after its certificates every second, in a namespace of its own."""
    name = f"t-wh-{secrets.token_hex(4)}"
    kube.run("create", "namespace", name)
    try:
        with deployed(kube.within(name), poll_seconds="1") as found:
            yield found
    finally:
        kube.run("delete", "namespace", name, "--wait=false")
