"""What tests of tools share: a PostgreSQL of their own."""

from collections.abc import Iterator

import pytest

from tests.agent.store.postgres import Server, server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """A PostgreSQL for this session."""
    with server() as running:
        yield running
