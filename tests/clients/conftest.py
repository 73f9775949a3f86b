"""The platform as a user starts it, for clients that run beside it."""

from collections.abc import Iterator

import pytest

from tests.e2e.local_platform import ROOT, LocalPlatform


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """The platform with the demo model and the shipped tools."""
    running = LocalPlatform(ROOT / "deploy" / "examples", tmp_path_factory.mktemp("platform"), {})
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()
