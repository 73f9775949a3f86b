"""One tool, installed as a person would: a Knative Service, an EventType and a Trigger."""

from collections.abc import Iterator

import pytest

from tests.cluster.journey.weather import EVENT_TYPE, TRIGGER, manifests
from tests.cluster.platform import Platform


@pytest.fixture(scope="module")
def installed(platform: Platform) -> Iterator[Platform]:
    """The EventType, its Trigger and the service, applied as a person would."""
    kube = platform.kube
    kube.apply(manifests())
    kube.wait("ksvc/get-current-weather", timeout=120)
    for manifest in (EVENT_TYPE, TRIGGER):
        kube.apply(manifest)
    yield platform
    for manifest in (EVENT_TYPE, TRIGGER):
        kube.run("delete", "--wait=false", "-f", str(manifest))
    kube.run("delete", "--wait=false", "-f", "-", stdin=manifests())
