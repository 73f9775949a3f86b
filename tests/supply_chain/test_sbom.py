"""Bills of materials: valid CycloneDX, and all that an image or a wheel holds."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from packaging.requirements import Requirement
from referencing import Registry, Resource

from supply_chain.packages import ROOT, BadLock, read_lock
from supply_chain.release import current_version
from supply_chain.sbom import IMAGES, ROOMS, main, of_image

SCHEMAS = Path(__file__).parent / "schemas"
DEBIAN = "libc6 2.36-9+deb12u10 amd64\npython3 3.11.2-1+b1 amd64\ntzdata 2025b-0+deb12u1 all\n"


@pytest.fixture(scope="module")
def bills(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("sbom")
    listed = folder / "debian"
    listed.write_text(DEBIAN)
    assert main([str(folder / "out"), "--debian", f"shim={listed}"]) == 0
    return {path.name: json.loads(path.read_text()) for path in (folder / "out").iterdir()}


def validator() -> jsonschema.protocols.Validator:
    found = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.json")}
    base = "http://cyclonedx.org/schema/"
    registry: Registry[Any] = Registry().with_resources(
        [(base + name, Resource.from_contents(schema)) for name, schema in found.items()]
    )
    return jsonschema.Draft7Validator(found["bom-1.5.SNAPSHOT.schema.json"], registry=registry)


def purls(bill: dict[str, Any]) -> set[str]:
    return {component["purl"] for component in bill["components"]}


def test_there_is_one_for_each_image_and_each_wheel(bills: dict[str, dict[str, Any]]) -> None:
    images = {f"beckon-{image}.image.cdx.json" for image in IMAGES}

    assert set(bills) == images | {f"beckon-{room}.wheel.cdx.json" for room in ROOMS}


def test_each_is_valid_cyclonedx(bills: dict[str, dict[str, Any]]) -> None:
    schema = validator()
    assert list(schema.iter_errors({"bomFormat": "CycloneDX", "specVersion": "1.5", "components": [{}]}))

    for name, bill in bills.items():
        assert [error.message for error in schema.iter_errors(bill)] == [], name


@pytest.mark.parametrize("image", IMAGES)
def test_an_images_bill_has_what_its_lock_installs(bills: dict[str, dict[str, Any]], image: str) -> None:
    lines = re.findall(r"^([\w.-]+==.+?) \\$", (ROOT / image / "requirements.lock").read_text(), re.MULTILINE)
    here = [Requirement(line) for line in lines]
    installed = {
        f"pkg:pypi/{one.name}@{str(one.specifier)[2:]}"
        for one in here
        if one.marker is None or one.marker.evaluate({"sys_platform": "linux"})
    }

    found = purls(bills[f"beckon-{image}.image.cdx.json"])

    assert installed <= found
    assert {f"pkg:pypi/beckon-{room}@{current_version()}" for room in IMAGES[image]} <= found
    assert not any("win32" in purl or "colorama" in purl for purl in found)


def test_the_agents_bill_has_the_libraries_of_its_page(bills: dict[str, dict[str, Any]]) -> None:
    (preact,) = [one for one in bills["beckon-agent.image.cdx.json"]["components"] if one["name"] == "preact"]

    assert preact["purl"].startswith("pkg:npm/preact@")
    assert re.fullmatch("[0-9a-f]{128}", preact["hashes"][0]["content"])
    assert "axe-core" not in json.dumps(bills["beckon-agent.image.cdx.json"])


def test_an_images_bill_has_the_packages_of_its_base(bills: dict[str, dict[str, Any]]) -> None:
    found = purls(bills["beckon-shim.image.cdx.json"])

    assert "pkg:deb/debian/libc6@2.36-9%2Bdeb12u10?arch=amd64" in found
    assert not any(purl.startswith("pkg:deb") for purl in purls(bills["beckon-operator.image.cdx.json"]))


def test_a_wheels_bill_has_what_it_needs_and_no_more(bills: dict[str, dict[str, Any]]) -> None:
    found = {component["name"] for component in bills["beckon-shim.wheel.cdx.json"]["components"]}

    assert {"beckon-contract", "beckon-sources", "httptools", "uvloop", "pydantic-core"} <= found
    assert not {"fastapi", "kopf", "pytest", "beckon-agent", "beckon-shim"} & found


def test_the_same_locks_give_the_same_bill() -> None:
    assert of_image("shim", DEBIAN) == of_image("shim", DEBIAN)
    assert of_image("shim", DEBIAN)["serialNumber"] != of_image("shim")["serialNumber"]


@pytest.mark.parametrize("line", ["thing>=1.0", "thing", "thing==1.*==", "-e ./thing"])
def test_a_lock_without_exact_versions_is_refused(tmp_path: Path, line: str) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"other==1.0 \\\n    --hash=sha256:00\n{line}\n")

    with pytest.raises(BadLock, match="run `make lock`"):
        read_lock(lock)


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--debian", "shim=/nonexistent"]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert "/nonexistent" in line
