"""Platforms for the end-to-end tests: one that many tests share, and a way to start others."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread, model_thread

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
Start = Callable[..., LocalPlatform]


@pytest.fixture(scope="module")
def start_platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start platforms that end with the module; returns when they answer."""
    started: list[LocalPlatform] = []

    def start(folder: Path = EXAMPLES, **settings: str) -> LocalPlatform:
        platform = LocalPlatform(folder, tmp_path_factory.mktemp("platform"), settings)
        started.append(platform)
        platform.wait_until_ready()
        return platform

    try:
        yield start
    finally:
        for platform in started:
            if platform.process.poll() is None:
                platform.stop()


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalPlatform]:
    """The platform as `make run` starts it, with the demo model and the shipped tools.

    All modules share it: a test that changes or ends it, or fills it with requests, starts its own.
    """
    platform = LocalPlatform(EXAMPLES, tmp_path_factory.mktemp("platform"), {})
    try:
        platform.wait_until_ready()
        yield platform
    finally:
        platform.stop()


@pytest.fixture(scope="module")
def model() -> Iterator[ModelThread]:
    """The model that answers what a test says."""
    with model_thread() as running:
        yield running
