"""Published images: pushed for each architecture and joined under one name, in a real registry."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from supply_chain.packages import ROOT
from tests.registry import Registry, running_registry

IMAGES = ("agent", "shim")
ARCHITECTURES = ("amd64", "arm64")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    for program in ("docker-registry", "skopeo", "buildah"):
        if not shutil.which(program) and os.environ.get("CI"):
            pytest.fail(f"{program} is missing: apt-get install {program}")
        if not shutil.which(program):
            pytest.skip(f"there is no {program}; apt-get install {program} brings it")
    with running_registry(tmp_path) as running:
        yield running


@pytest.fixture
def environment(registry: Registry, tmp_path: Path) -> Mapping[str, str]:
    """What the workflow sets, with a store of images that ends with the test."""
    buildah = f"buildah --root {tmp_path}/store --runroot {tmp_path}/run --storage-driver vfs"
    return {
        **os.environ,
        "REGISTRY": f"{registry.host}/team",
        "TAG": "1.2.3",
        "IMAGES": " ".join(IMAGES),
        "BUILDER": buildah,
        "BUILDAH": buildah,
        "TLS_VERIFY": "false",
        "REGISTRY_AUTH_FILE": str(registry.login),
    }


def publish(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = ("sh", "supply_chain/publish.sh", *words)
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def build_images(environment: Mapping[str, str], architecture: str) -> None:
    """Make empty images in the place of those that `make images` builds on a machine of an architecture."""
    for image in IMAGES:
        script = f"""set -e
            container=$({environment["BUILDER"]} from scratch)
            {environment["BUILDER"]} config --arch {architecture} $container
            {environment["BUILDER"]} commit --quiet --rm $container $REGISTRY/beckon-{image}:$TAG
        """
        subprocess.run(("sh", "-c", script), env=environment, capture_output=True, check=True)


def test_an_image_has_every_architecture_under_one_name(
    registry: Registry, environment: Mapping[str, str]
) -> None:
    for architecture in ARCHITECTURES:
        build_images(environment, architecture)
        pushed = publish(environment, "push", architecture)
        assert pushed.returncode == 0, pushed.stderr

    joined = publish(environment, "index", "agent")

    assert joined.returncode == 0, joined.stderr
    assert joined.stdout.strip() == registry.read_digest("team/beckon-agent", "1.2.3")
    for architecture in ARCHITECTURES:
        found = registry.inspect_image("team/beckon-agent", "1.2.3", architecture)
        assert found["architecture"] == architecture


def test_a_missing_architecture_is_named(registry: Registry, environment: Mapping[str, str]) -> None:
    build_images(environment, "amd64")
    assert publish(environment, "push", "amd64").returncode == 0

    joined = publish(environment, "index", "shim")

    assert joined.returncode == 2
    assert joined.stderr.splitlines()[-1] == (
        f"publish.sh: {registry.host}/team/beckon-shim:1.2.3-arm64 cannot be read; "
        "push it first: publish.sh push arm64"
    )


def test_no_verb_is_refused() -> None:
    assert publish({**os.environ, "REGISTRY": "r.example", "TAG": "1"}, "sign").returncode == 2
