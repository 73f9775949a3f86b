"""Platforms for the end-to-end tests: one that many tests share, and a way to start others."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.local_platform import LocalPlatform
from tests.e2e.model_thread import ModelThread, model_thread
from tests.patience import wait_until

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


class Workbench:
    """A platform that runs on an empty folder, to which one test after the other adds its tools."""

    def __init__(self, platform: LocalPlatform) -> None:
        self.platform = platform
        self._core = set(platform.children())

    @contextmanager
    def tools(self, *names: str, **files: str) -> Iterator[Path]:
        """Have these manifests in a folder, and offer these tools; in the end, have and offer none."""
        folder = Path(tempfile.mkdtemp(dir=self.platform.folder))
        try:
            for name, text in files.items():
                (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
            wait_until(lambda: self.platform.tool_names() == set(names))
            yield folder
        finally:
            shutil.rmtree(folder)
            wait_until(lambda: self.platform.tool_names() == set())
            # The next test may have a tool of the same name, or need the adapter too.
            wait_until(lambda: self._core >= set(self.platform.children()))


@pytest.fixture(scope="session")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """The platform for tests that need tools of their own and no settings."""
    folder = tmp_path_factory.mktemp("manifests")
    platform = LocalPlatform(folder, tmp_path_factory.mktemp("platform"), {})
    try:
        platform.wait_until_ready()
        yield Workbench(platform)
    finally:
        platform.stop()
