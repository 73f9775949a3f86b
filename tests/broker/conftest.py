"""The log that the brokers of a test keep their events in: memory, and for most tests JetStream, too."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.broker.broker_process import log_settings
from tests.nats_server import NatsServer

BOTH = frozenset(
    {"test_dead_letters", "test_delivery", "test_inbox", "test_one_attempt", "test_replies", "test_stamping"}
)
"""Modules whose tests run once with each log."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of these modules with both logs."""
    if metafunc.module.__name__.rpartition(".")[2] in BOTH:
        logs = ["memory"] if metafunc.definition.get_closest_marker("memory_log") else ["memory", "jetstream"]
        metafunc.parametrize("log", logs, indirect=True)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A server for all tests of this process that do not end it."""
    server = NatsServer(tmp_path_factory.mktemp("nats") / "server").start()
    yield server
    server.stop()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server that the test may kill."""
    server = NatsServer(tmp_path / "nats").start()
    yield server
    server.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for manifests."""
    path = tmp_path / "manifests"
    path.mkdir()
    return path


@pytest.fixture(autouse=True)
def log(request: pytest.FixtureRequest) -> Iterator[str]:
    """Keep the events of the test's brokers in this log, in streams of its own."""
    chosen: str = getattr(request, "param", "memory")
    if chosen == "jetstream":
        server: NatsServer = request.getfixturevalue("nats_server")
        log_settings.update(nats_url=server.url, nats_stream=uuid4().hex[:16])
    yield chosen
    log_settings.clear()
