import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from supply_chain.sbom import IMAGES
from tests.cluster.images.building import built_images
from tests.cluster.images.inputs import ROOT, snapshot, tar_name
from tests.cluster.images.lending import lent

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    snapshot(ROOT, tmp_path)
    return tmp_path


def names(root: Path, base: str = "a base") -> dict[str, str]:
    return {image: tar_name(image, base, root) for image in IMAGES}


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> set[str]:
    return {image for image in before if before[image] != after[image]}


@pytest.mark.usefixtures("tars")
def test_what_is_built_is_not_built_again(checkout: Path) -> None:
    first = built_images(root=checkout)
    times = {image: tar.stat().st_mtime_ns for image, tar in first.items()}

    again = built_images(root=checkout)

    assert {image: tar.stat().st_mtime_ns for image, tar in again.items()} == times


def test_a_change_builds_the_images_that_it_goes_into_and_no_other(checkout: Path) -> None:
    before = names(checkout)

    (checkout / "shim" / "beckon_shim" / "added.py").write_text("")
    after_shim = names(checkout)
    (checkout / "contract" / "pyproject.toml").write_text("")
    after_contract = names(checkout)

    assert changed(before, after_shim) == {"shim"}
    assert changed(after_shim, after_contract) == set(IMAGES)
    assert changed(after_contract, names(checkout, "another base")) == set(IMAGES)


def test_bytecode_and_the_place_of_the_checkout_change_nothing(checkout: Path, tmp_path: Path) -> None:
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    before = names(checkout)

    (checkout / "shim" / "beckon_shim" / "__pycache__").mkdir(exist_ok=True)
    (checkout / "shim" / "beckon_shim" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    shutil.copytree(checkout, moved)

    assert names(moved) == before


def test_what_is_lent_to_a_build_is_gone_after_it() -> None:
    with lent() as options:
        paths = [Path(option.rpartition("src=")[2]) for option in options]
        assert paths
        assert all(
            path.stat().st_mode & 0o077 == 0 or path.parent.stat().st_mode & 0o077 == 0 for path in paths
        )

    assert not any(path.exists() for path in paths)
