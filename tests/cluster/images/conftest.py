"""The images, built once a session where the sources have changed."""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.images.building import built_images
from tests.cluster.images.containers import Image, opened
from tests.cluster.images.store import store
from tests.cluster.machine import packages
from tests.cluster.machine.places import places


@pytest.fixture(scope="session")
def tars() -> Mapping[str, Path]:
    """The images as tars; they are built here, so this needs Debian's packages and root."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        pytest.skip("building images here needs root on Debian")
    packages.install(("runc",))
    return built_images()


@pytest.fixture(scope="session")
def images(tars: Mapping[str, Path]) -> Iterator[Mapping[str, Image]]:
    """The images, laid open."""
    with ExitStack() as stack:
        yield {name: stack.enter_context(opened(store(places()), tar)) for name, tar in tars.items()}
