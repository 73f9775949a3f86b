"""The workflows: linted, with the verbs of `.ci/run`, and steps whose scripts run here."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from supply_chain.packages import ROOT
from supply_chain.sbom import IMAGES
from tests.cluster.machine import programs
from tests.cluster.machine.places import places

SOURCE = "https://git.example/o/beckon/blob/v1.2.3"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
# A stand-in for GitHub's command line: it notes what it is called with.
GH = """#!/bin/sh
echo "$*" >> {calls}
case "$1 $2" in
"pr list") echo {open} ;;
esac
"""


def read_workflow(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yaml").read_text())
    return found


def jobs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for path in WORKFLOWS:
        for name, job in read_workflow(path.stem)["jobs"].items():
            yield f"{path.stem}/{name}", job


def scripts() -> Iterator[tuple[str, str]]:
    for name, job in jobs():
        for step in job.get("steps", []):
            if "run" in step:
                yield name, step["run"]


def fake_gh(folder: Path, open_request: str = "") -> tuple[Mapping[str, str], Path]:
    calls, program = folder / "calls", folder / "bin" / "gh"
    program.parent.mkdir()
    program.write_text(GH.format(calls=calls, open=open_request or "''"))
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}, calls


@pytest.mark.timeout(600)
def test_actionlint_finds_nothing() -> None:
    if not shutil.which("go") and not os.environ.get("CI"):
        pytest.skip("actionlint is built with Go, which is missing")
    actionlint = programs.build(places(), "actionlint") / "actionlint"

    done = subprocess.run((actionlint, "-color=false"), cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_zizmor_finds_nothing_and_finds_a_mistake(tmp_path: Path) -> None:
    zizmor = (Path(sys.executable).with_name("zizmor"), "--offline", "--persona=pedantic", "--quiet")
    unpinned = tmp_path / "unpinned.yaml"
    unpinned.write_text(
        "on: push\njobs: {a: {runs-on: ubuntu-24.04, steps: [{uses: actions/checkout@v7}]}}\n"
    )

    ours = subprocess.run((*zizmor, ".github"), cwd=ROOT, capture_output=True, text=True, check=False)
    wrong = subprocess.run((*zizmor, unpinned), capture_output=True, text=True, check=False)

    assert ours.returncode == 0, ours.stdout
    assert "unpinned-uses" in wrong.stdout


def test_each_action_is_pinned_by_its_commit_with_the_version_beside_it() -> None:
    used = re.findall(r"uses: (.*)", "\n".join(path.read_text() for path in WORKFLOWS))

    assert len(used) > 20
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [use for use in used if not pinned.fullmatch(use) and not use.startswith("./")] == []


def test_one_action_has_one_commit_everywhere() -> None:
    commits: dict[str, set[str]] = {}
    for path in WORKFLOWS:
        for action, commit in re.findall(r"uses: ([\w/-]+)@(\w+)", path.read_text()):
            commits.setdefault(action, set()).add(commit)

    assert {action: found for action, found in commits.items() if len(found) > 1} == {}


def test_each_job_has_a_limit_of_time_and_rights_of_its_own() -> None:
    called = {name for name, job in jobs() if "uses" in job}

    assert {name for name, job in jobs() if "permissions" not in job} == set()
    assert {name for name, job in jobs() if "timeout-minutes" not in job} == called
    assert [path.name for path in WORKFLOWS if read_workflow(path.stem)["permissions"] != {}] == []


def test_pull_requests_run_the_verbs_of_ci() -> None:
    tiers = set(re.findall(r"^ *tier '.*' make (\S+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE))
    others = read_workflow("test")["jobs"]["others"]["strategy"]["matrix"]["verb"]
    run = {
        verb
        for name, text in scripts()
        if name.startswith("test/")
        for verb in re.findall(r"make ([\w-]+)", text)
    }

    assert len(tiers) > 4
    assert tiers - run - {*others} == set()


def test_each_verb_script_and_module_of_a_step_exists() -> None:
    verbs = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    texts = "\n".join(text for _, text in scripts())
    others = read_workflow("test")["jobs"]["others"]["strategy"]["matrix"]["verb"]

    assert set(re.findall(r"make (?:-s )?([a-z-]+)", texts)) | {*others} <= verbs
    assert all((ROOT / path).exists() for path in re.findall(r"sh (supply_chain/\S+\.sh)", texts))
    for module in re.findall(r"python -m supply_chain\.(\w+)", texts):
        assert (ROOT / "supply_chain" / f"{module}.py").exists()


def test_the_jobs_of_images_have_all_images() -> None:
    release, scan = read_workflow("release")["jobs"], read_workflow("scan")["jobs"]
    pushed = [
        step["env"]["IMAGES"].split()
        for step in release["images"]["steps"]
        if "IMAGES" in step.get("env", {})
    ]

    assert pushed == [list(IMAGES)]
    assert release["index"]["strategy"]["matrix"]["image"] == list(IMAGES)
    assert scan["images"]["strategy"]["matrix"]["image"] == list(IMAGES)


def test_the_wheels_of_a_release_have_the_version_of_its_tag(tmp_path: Path) -> None:
    (step,) = [
        step
        for step in read_workflow("release")["jobs"]["wheels"]["steps"]
        if "make dist" in step.get("run", "")
    ]
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\necho "$*"\n')
    make.chmod(0o755)
    environment = {"VERSION": "1.2.3", "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    printed = subprocess.run(
        ("bash", "-euo", "pipefail", "-c", step["run"]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert step["env"] == {"VERSION": "${{ needs.version.outputs.version }}"}
    assert printed.split() == ["dist", "sbom", "VERSION=1.2.3"]


@pytest.mark.parametrize(("version", "kind"), [("1.2.3", "--latest"), ("1.2.3rc1", "--prerelease")])
def test_the_release_on_github_has_notes_wheels_and_bills(tmp_path: Path, version: str, kind: str) -> None:
    environment, calls = fake_gh(tmp_path)
    for name in (
        "notes/notes.md",
        "wheels/beckon-1.2.3-py3-none-any.whl",
        "sbom-wheels/beckon.wheel.cdx.json",
        "sbom-images-amd64/beckon-shim.image.cdx.json",
        "sbom-images-arm64/beckon-shim.image.cdx.json",
        "site/site.tar.gz",
    ):
        (tmp_path / "dist" / name).parent.mkdir(parents=True)
        (tmp_path / "dist" / name).touch()
    (script,) = [text for name, text in scripts() if name == "release/github"]
    variables = {"TAG_NAME": f"v{version}", "VERSION": version, "GITHUB_REPOSITORY": "o/beckon"}

    subprocess.run(
        ("bash", "-euo", "pipefail", "-c", script), cwd=tmp_path, env={**environment, **variables}, check=True
    )

    (call,) = calls.read_text().splitlines()
    assert call == (
        f"release create v{version} --repo o/beckon --verify-tag {kind} --title Beckon {version} "
        "--notes-file dist/notes/notes.md dist/wheels/beckon-1.2.3-py3-none-any.whl "
        "dist/sbom-wheels/beckon.wheel.cdx.json "
        "dist/beckon-shim.amd64.cdx.json dist/beckon-shim.arm64.cdx.json dist/site/site.tar.gz"
    )


@pytest.mark.parametrize("earlier", [False, True])
def test_the_site_of_a_release_has_the_versions_before_it(tmp_path: Path, earlier: bool) -> None:
    (script,) = [text for name, text in scripts() if name == "release/site" and "gh release" in text]
    programs_of_step = {
        "gh": """case "$1 $2" in
"release list") test ! -e last.tar.gz || echo v1.2.2 ;;
"release download") test "$3" = v1.2.2 && cp last.tar.gz "$9" ;;
esac""",
        "make": "mkdir dist/site/1.2.3 && touch dist/site/1.2.3/index.html",
    }
    for name, text in programs_of_step.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    if earlier:
        (tmp_path / "1.2.2").mkdir()
        (tmp_path / "1.2.2" / "index.html").touch()
        subprocess.run(("tar", "-czf", "last.tar.gz", "1.2.2"), cwd=tmp_path, check=True)
    variables = {
        "SOURCE": SOURCE,
        "GITHUB_REPOSITORY": "o/beckon",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }

    subprocess.run(
        ("bash", "-euo", "pipefail", "-c", script), cwd=tmp_path, env={**os.environ, **variables}, check=True
    )

    with tarfile.open(tmp_path / "dist" / "site.tar.gz") as packed:
        pages = {name.removeprefix("./") for name in packed.getnames() if name.endswith("index.html")}
    assert pages == {"1.2.3/index.html"} | ({"1.2.2/index.html"} if earlier else set())


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main")
    done = subprocess.run(("git", *identity, *words), cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository with a lock, and a remote that takes its branches."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git(tmp_path, "init", "--quiet", "--bare", "remote")
    git(folder, "init", "--quiet")
    for name in ("requirements.lock", "README.md"):
        (folder / name).write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "One")
    git(folder, "remote", "add", "origin", str(tmp_path / "remote"))
    return folder


def propose(clone: Path, environment: Mapping[str, str], changed: str) -> subprocess.CompletedProcess[str]:
    """Change a file as `make lock` may, and run the script with the difference."""
    if changed:
        (clone / changed).write_text("two\n")
    patch = clone.parent / "lock.patch"
    patch.write_text(git(clone, "diff", "--binary"))
    git(clone, "checkout", "--quiet", ".")
    command = ("sh", str(ROOT / "supply_chain/propose_lock.sh"), str(patch))
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("open_request", "created"), [("", 1), ("7", 0)])
def test_new_locks_become_one_pull_request(clone: Path, open_request: str, created: int) -> None:
    environment, calls = fake_gh(clone.parent, open_request)

    done = propose(clone, environment, "requirements.lock")

    assert done.returncode == 0, done.stderr
    assert git(clone.parent / "remote", "show", "lock-update:requirements.lock") == "two\n"
    assert calls.read_text().count("pr create --head lock-update") == created


def test_unchanged_locks_push_nothing(clone: Path) -> None:
    environment, calls = fake_gh(clone.parent)

    done = propose(clone, environment, "")

    assert (done.returncode, done.stdout) == (0, "the locks are up to date\n")
    assert not calls.exists()


def test_a_patch_of_another_file_is_refused(clone: Path) -> None:
    environment, calls = fake_gh(clone.parent)

    done = propose(clone, environment, "README.md")

    assert done.returncode == 2
    assert "changes README.md, which is no lock" in done.stderr
    assert not calls.exists()
