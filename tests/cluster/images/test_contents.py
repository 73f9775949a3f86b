import re
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from supply_chain.sbom import IMAGES
from tests.cluster.images.archive import upgrade_size
from tests.cluster.images.base import SOURCES
from tests.cluster.images.containers import Image
from tests.cluster.images.inputs import ROOT, VERSION, reference

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

Images = Mapping[str, Image]

PINNED = re.compile(r"^([\w.-]+)==([^\s;\\]+)", re.MULTILINE)
BUILD_PROGRAMS = {
    "pip",
    "pip3",
    "uv",
    "hatch",
    "hatchling",
    "gcc",
    "cc",
    "make",
    "ld",
    "git",
    "curl",
    "wget",
    "node",
    "npm",
}
BUILD_MODULES = ("pip", "setuptools", "wheel", "ensurepip", "hatchling")
FINDABLE = "import sys, importlib.util as u; print([name for name in sys.argv[1:] if u.find_spec(name)])"


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_says_who_it_is_and_runs_as_a_numeric_stranger(images: Images, image: str) -> None:
    config = images[image].config

    assert config["RepoTags"] == [reference(image)]
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["python", "-m", f"beckon_{image}"]
    assert not config.get("Cmd")
    assert config["StopSignal"] == "SIGTERM"
    assert config["Labels"]["org.opencontainers.image.title"] == f"beckon-{image}"
    assert config["Labels"]["org.opencontainers.image.version"] == VERSION


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_holds_exactly_what_its_service_needs_at_the_locked_versions(
    images: Images, image: str
) -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = dict(PINNED.findall(lock))

    found = installed(images[image])
    python = images[image].run("python", "-c", "import platform; print(platform.python_version())")

    programs = {"agent": ("agent", "demo"), "tools": ("tools", "adapter")}.get(image, (image,))
    needed = [closure(f"beckon-{room}", found, python.stdout.strip()) for room in programs]
    assert set(found) == set().union(*needed)
    assert {name: one.version for name, one in found.items()} == {
        name: VERSION if name.startswith("beckon-") else locked[name] for name in found
    }


def test_the_image_of_the_agent_holds_all_that_its_page_loads(images: Images) -> None:
    load = "from beckon_agent.api.page import load_page; print('vendor/preact.mjs' in load_page().files)"

    assert images["agent"].run("python", "-c", load).stdout == "True\n"


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_nothing_to_build_or_to_fetch_with(images: Images, image: str) -> None:
    root = images[image].root
    folders = [root / path for path in ("usr/bin", "usr/sbin", "usr/local/bin", "opt/beckon/bin")]
    programs = {path.name for folder in folders for path in folder.iterdir()}

    assert programs & BUILD_PROGRAMS == set()
    assert images[image].run("python", "-c", FINDABLE, *BUILD_MODULES).stdout == "[]\n"


@pytest.mark.parametrize("image", IMAGES)
def test_nothing_of_the_machine_that_built_it_is_in_an_image(images: Images, image: str) -> None:
    root = images[image].root
    keys = {path.name for path in (root / "etc/apt/trusted.gpg.d").iterdir()}

    assert [path.read_text() for path in (root / "etc/apt/sources.list.d").iterdir()] == [SOURCES]
    assert all(name.startswith("debian-archive-") for name in keys), keys
    assert list((root / "run/secrets").glob("*")) == []
    assert list((root / "var/lib/apt/lists").glob("*_*")) == []
    assert list((root / "var/cache/apt").rglob("*.deb")) == []
    assert list((root / "opt/beckon").rglob("direct_url.json")) == []


@pytest.mark.parametrize("image", IMAGES)
def test_every_module_of_an_image_is_compiled_since_it_cannot_be_when_it_runs(
    images: Images, image: str
) -> None:
    sources = list((images[image].root / "opt/beckon/lib").glob("python3*/site-packages/beckon_*/**/*.py"))

    uncompiled = [
        path for path in sources if not any((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"))
    ]

    assert sources
    assert uncompiled == []


def test_the_kubernetes_package_that_kopf_would_load_is_not_in_the_operator(images: Images) -> None:
    assert images["operator"].run("python", "-c", FINDABLE, "kopf", "kubernetes").stdout == "['kopf']\n"


@pytest.mark.parametrize("image", IMAGES)
def test_another_version_of_beckon_is_a_small_download(tars: Mapping[str, Path], image: str) -> None:
    # The layer with Beckon's own code and the page's libraries, compressed; dependencies are in layers below.
    assert upgrade_size(tars[image]) < 2_500_000


def installed(image: Image) -> dict[str, Distribution]:
    """The distributions in an image; they are read, not run."""
    folders = [str(path) for path in (image.root / "opt/beckon/lib").glob("python3*/site-packages")]
    return {canonicalize_name(found.name): found for found in distributions(path=folders)}


def closure(name: str, found: Mapping[str, Distribution], python: str) -> set[str]:
    """What `name` needs with all its extras, itself included, by what is declared, in a Python."""
    needed: set[tuple[str, str]] = set()
    extras = found[name].metadata.get_all("Provides-Extra") or () if name in found else ()
    waiting = [(name, extra) for extra in ("", *extras)]
    while waiting:
        each = waiting.pop()
        if each not in needed:
            needed.add(each)
            waiting += requirements(found.get(each[0]), each[1], python)
    return {name for name, _ in needed}


def requirements(distribution: Distribution | None, extra: str, python: str) -> Iterator[tuple[str, str]]:
    """The names that a distribution asks for with one of its extras (or "" for none), and their extras."""
    for line in (distribution and distribution.requires) or ():
        required = Requirement(line)
        where = {"extra": extra, "python_full_version": python}
        if required.marker is None or required.marker.evaluate(where):
            for wanted in ("", *required.extras):
                yield canonicalize_name(required.name), wanted
