"""`make images`: which base it builds from, by a builder that notes what it is called with.

The images themselves are built for real by the tests on a cluster.
"""

import json
import subprocess
from pathlib import Path

from supply_chain.packages import ROOT

DIGEST = f"sha256:{'ab' * 32}"
BUILDER = """#!/bin/sh
echo "$*" >> {calls}
case "$1" in
    pull) exit {pull} ;;
    image) echo "docker.io/library/python@{digest}" ;;
    run) echo "libc6 2.36 amd64" ;;
esac
"""


def make_images(
    folder: Path, *variables: str, pull: int = 0
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run the verb; return how it ended, and the calls of the builder."""
    calls, builder = folder / "calls", folder / "docker"
    builder.write_text(BUILDER.format(calls=calls, digest=DIGEST, pull=pull))
    builder.chmod(0o755)
    words = ["make", "-s", "images", f"BUILDER={builder}", f"SBOM={folder / 'sbom'}", *variables]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done, calls.read_text().splitlines() if calls.exists() else []


def test_the_default_base_is_looked_up_and_every_image_built_from_its_digest(tmp_path: Path) -> None:
    done, calls = make_images(tmp_path)

    assert done.returncode == 0, done.stderr
    builds = [call for call in calls if call.startswith("build ")]
    assert len(builds) == 5
    for build in builds:
        assert f"--build-arg BASE=docker.io/library/python:3.11-slim-bookworm@{DIGEST} " in build
        assert f"org.opencontainers.image.base.digest={DIGEST}" in build
        assert "org.opencontainers.image.base.name=docker.io/library/python:3.11-slim-bookworm " in build
    assert f"@{DIGEST}" in done.stdout
    for image in ("agent", "shim", "operator", "tools", "broker"):
        bill = json.loads((tmp_path / "sbom" / f"beckon-{image}.image.cdx.json").read_text())
        assert "pkg:deb/debian/libc6@2.36?arch=amd64" in {one["purl"] for one in bill["components"]}


def test_a_base_by_its_digest_is_taken_as_it_is(tmp_path: Path) -> None:
    base = f"registry.example/python@{DIGEST}"

    done, calls = make_images(tmp_path, f"BASE={base}")

    assert done.returncode == 0, done.stderr
    assert not [call for call in calls if call.startswith("pull")]
    assert all(f"BASE={base} " in call for call in calls if call.startswith("build "))


def test_a_base_by_its_tag_is_refused_unless_said_otherwise(tmp_path: Path) -> None:
    base = "BASE=registry.example/python:3.12"

    done, calls = make_images(tmp_path, base)

    assert done.returncode != 0
    assert "has no digest" in done.stderr
    assert calls == []
    taken, calls = make_images(tmp_path, base, "UNPINNED_BASE=yes")
    assert taken.returncode == 0, taken.stderr
    assert not any("base.digest" in call for call in calls)


def test_a_digest_that_cannot_be_looked_up_builds_nothing(tmp_path: Path) -> None:
    done, calls = make_images(tmp_path, pull=1)

    assert done.returncode != 0
    assert "cannot be looked up" in done.stderr
    assert [call.split()[0] for call in calls] == ["pull"]
