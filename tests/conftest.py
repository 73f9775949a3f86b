"""What holds for every test: property tests have no deadline, because the machine may be busy.

In CI they try the same examples every time, so that a change is judged by itself; on a
developer's machine they go on exploring, and what they find becomes a test of its own.

Every test leaves the log as it was: what a service sets up when it starts would write to a standard
error that is closed once the test is over. It leaves the handler of SIGTERM as it was, too: sse-starlette
ends every stream of a process in which the handler of a stopped uvicorn stays behind.

The HTTP clients of one process share the certificates that they trust: to read those of the machine again
for each client is a fifth of the CPU time of a small test.

While modules are imported and tests collected, hardly anything is garbage. To look for it took a fifth of the
CPU time of each worker, and to look at all of that again during the tests a twenty-fifth. During the tests
garbage is collected as seldom as in a service: as often as Python does by default took a tenth.
"""

import asyncio
import functools
import gc
import logging
import os
import signal
import ssl
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import httpx._transports.default as httpx_transport
import httpx2._transports.default as httpx2_transport
import pytest
from hypothesis import settings

from beckon_runtime.logs import log_config
from beckon_runtime.process import GARBAGE_THRESHOLDS
from tests.agent.store.postgres import Server, server
from tests.nats_server import NatsServer

# A test that starts `make`, or the banner, which names the targets of a `make` above it, gives the same
# result below `make test` as below pytest alone.
for _variable in ("MAKELEVEL", "MAKEFLAGS", "MFLAGS"):
    os.environ.pop(_variable, None)

settings.register_profile("explore", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")


def _shared(create: Callable[..., ssl.SSLContext]) -> Callable[..., ssl.SSLContext]:
    """Return a function that makes one context for the same arguments and the same environment."""

    @functools.cache
    def cached(_environment: tuple[str | None, ...], *arguments: Any, **options: Any) -> ssl.SSLContext:
        return create(*arguments, **options)

    def shared(*arguments: Any, **options: Any) -> ssl.SSLContext:
        environment = (os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
        return cached(environment, *arguments, **options)

    return shared


_transport: Any
for _transport in (httpx_transport, httpx2_transport):
    _transport.create_ssl_context = _shared(_transport.create_ssl_context)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GARBAGE_THRESHOLDS)
        gc.enable()


_CONFIGURED = tuple(log_config("tests", readable=False)["loggers"])


@pytest.fixture(autouse=True)
def _log_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    levels = [(logger, logger.level) for logger in map(logging.getLogger, _CONFIGURED)]
    yield
    root.handlers[:] = handlers
    for logger, before in [(root, level), *levels]:
        if logger.level != before:  # to set a level goes through all loggers of the process
            logger.setLevel(before)


@pytest.fixture(autouse=True)
def _handler_of_sigterm_as_it_was() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    after = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, before)
    assert after == before, f"the test leaves a handler of SIGTERM behind: {after}"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL for all tests of this process; a test that stops it starts it again."""
    with server() as running:
        yield running


@pytest.fixture(scope="session")
def template(postgres: Server) -> str:
    """The name of a database with the newest schema, to be copied: that is faster than migrating."""
    from beckon_agent.store.sql.open import open_store  # noqa: PLC0415  # most tests need no SQLAlchemy

    async def make() -> None:
        store = await open_store(await postgres.copy("ready"))
        await store.aclose()

    asyncio.run(make())
    return "ready"


@pytest.fixture
def nats_server(tmp_path: Path) -> Iterator[NatsServer]:
    """Give a nats-server with JetStream that runs; the test may kill it and start it again."""
    server = NatsServer(tmp_path / "nats")
    try:
        yield server.start()
    finally:
        server.stop()
