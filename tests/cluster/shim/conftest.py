"""One stack for all tests of the shim that leave it whole."""

from collections.abc import Iterator

import pytest

from tests.cluster.kube import Kube
from tests.cluster.shim.stack import stacked


@pytest.fixture(scope="session")
def shim(kube: Kube) -> Iterator[Kube]:
    """A namespace with a shim of three replicas, a Broker, an echo tool and a caller."""
    with stacked(kube, replicas=3) as namespace:
        yield namespace
