"""The chart as a registry has it: its images, its links, and its annotations for Artifact Hub."""

import json
from pathlib import Path

import pytest
import yaml

from supply_chain.chart import describe_release, list_changes, main, stage_chart
from supply_chain.packages import ROOT
from supply_chain.release import BadRelease, current_version, to_semantic
from supply_chain.sbom import IMAGES

REGISTRY = "registry.example:5000/team/beckon"


def test_the_images_of_a_staged_chart_come_from_the_registry(tmp_path: Path) -> None:
    chart = stage_chart(tmp_path, REGISTRY)

    values = yaml.safe_load((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    assert values["image"]["registry"] == REGISTRY
    assert schema["properties"]["image"]["properties"]["registry"]["default"] == REGISTRY
    assert f"`{json.dumps(REGISTRY)}`" in (chart / "README.md").read_text()


def test_the_annotations_name_every_image_and_crd(tmp_path: Path) -> None:
    described = yaml.safe_load((stage_chart(tmp_path, REGISTRY) / "Chart.yaml").read_text())["annotations"]

    images = yaml.safe_load(described["artifacthub.io/images"])
    crds = yaml.safe_load(described["artifacthub.io/crds"])
    written = [yaml.safe_load(path.read_text()) for path in (ROOT / "charts/beckon/crds").iterdir()]
    assert [one["image"] for one in images] == [
        f"{REGISTRY}/beckon-{image}:{current_version()}" for image in IMAGES
    ]
    assert {(one["name"], one["kind"], one["version"]) for one in crds} == {
        (crd["metadata"]["name"], crd["spec"]["names"]["kind"], version["name"])
        for crd in written
        for version in crd["spec"]["versions"]
    }
    assert all(isinstance(value, str) for value in described.values())


def test_links_out_of_the_chart_lead_to_the_sources(tmp_path: Path) -> None:
    source = "https://git.example/beckon/blob/v1.2.3"

    linked = (stage_chart(tmp_path / "linked", REGISTRY, source) / "README.md").read_text()
    plain = (stage_chart(tmp_path / "plain", REGISTRY) / "README.md").read_text()

    assert f"]({source}/docs/install.md" in linked
    assert "../../" not in linked + plain
    assert "](docs/" not in plain


def test_the_commands_of_its_readme_install_it_from_the_registry(tmp_path: Path) -> None:
    readme = (stage_chart(tmp_path, REGISTRY) / "README.md").read_text()

    version = to_semantic(current_version())
    assert f"$ helm install beckon oci://{REGISTRY}/charts/beckon --version {version} --namespace" in readme
    assert "charts/beckon --namespace" not in readme


def test_changes_have_the_kinds_of_the_changelog() -> None:
    notes = "### Added\n\n- One,\n  on two lines.\n- Two.\n\n### Fixed\n\n- Three.\n\n### Notes\n\n- Four."

    assert list_changes(notes) == [
        {"kind": "added", "description": "One, on two lines."},
        {"kind": "added", "description": "Two."},
        {"kind": "fixed", "description": "Three."},
        {"kind": "changed", "description": "Four."},
    ]


@pytest.mark.parametrize(("version", "prerelease"), [("1.2.3", "false"), ("1.2.3rc1", "true")])
def test_a_prerelease_is_marked(version: str, prerelease: str) -> None:
    assert describe_release(version, REGISTRY)["artifacthub.io/prerelease"] == prerelease


@pytest.mark.parametrize(
    "registry", ["", "https://registry.example", "Registry.example", "registry.example/", "a b"]
)
def test_no_registry_is_refused(registry: str, tmp_path: Path) -> None:
    with pytest.raises(BadRelease, match="is no registry"):
        stage_chart(tmp_path, registry)


def test_a_missing_helm_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--registry", REGISTRY, "--helm", "no-such-helm"]) == 2
    assert capsys.readouterr().err == (
        "chart: no-such-helm is missing; install Helm 3.8 or later, or name it with --helm\n"
    )
