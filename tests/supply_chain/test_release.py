"""A release: one version in every file, and a changelog that is cut by it."""

import datetime
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from supply_chain.packages import ROOT
from supply_chain.release import (
    BadRelease,
    check_tag,
    close_section,
    current_version,
    cut_release,
    find_disagreements,
    main,
    read_notes,
    to_semantic,
)

DATE = datetime.date(2031, 4, 5)
OPEN = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- One.\n"
RELEASED = re.compile(r"(?m)^## \[\d")
# An image of ours with a version, wherever it is written.
IMAGE = re.compile(r"dev\.local/beckon-[a-z]+:\d")


def tracked_files() -> list[Path]:
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the files of this checkout that a release may change."""
    for path in tracked_files():
        if path.suffix in {".md", ".toml", ".yaml", ".py"} or path.name == "Dockerfile":
            copy = tmp_path / path.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    (tmp_path / "CHANGELOG.md").write_text(OPEN, encoding="utf-8")
    return tmp_path


def test_all_files_have_the_same_version() -> None:
    assert find_disagreements(current_version()) == []


def test_the_readme_says_that_there_is_no_release_until_the_changelog_has_one() -> None:
    readme, changelog = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CHANGELOG.md"))

    assert ("No release is published yet" in readme) == (RELEASED.search(changelog) is None)


def test_the_command_prints_the_version_of_the_files() -> None:
    printed = subprocess.run(
        (Path(sys.executable).with_name("beckon"), "--version"), capture_output=True, text=True, check=True
    )

    assert printed.stdout.strip() == current_version()


@pytest.mark.parametrize(
    ("setting", "option"), [((), ""), (("VERSION=1.2.3",), " --release 1.2.3")], ids=["checkout", "release"]
)
def test_make_builds_the_wheels_of_a_release_only_where_it_is_given(
    setting: tuple[str, ...], option: str
) -> None:
    printed = subprocess.run(
        ("make", "--dry-run", "dist", *setting), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout

    command = " ".join(printed.splitlines()[-1].replace("'", "").split())
    assert command == f".venv/bin/python -m supply_chain.wheels dist/wheels{option}"


def test_no_other_file_names_an_image_by_a_version() -> None:
    changed = {"deploy", "docs", "tools"}
    others = {
        path.relative_to(ROOT).as_posix()
        for path in tracked_files()
        if path.suffix in {".md", ".toml", ".yaml", ".py", ".sh"} or path.name in {"Makefile", "Dockerfile"}
        if path.relative_to(ROOT).parts[0] not in changed and IMAGE.search(path.read_text(encoding="utf-8"))
    }

    assert others == set()


def test_a_cut_writes_the_version_everywhere(checkout: Path) -> None:
    cut_release("7.8.9rc1", DATE, checkout)

    chart = yaml.safe_load((checkout / "charts/beckon/Chart.yaml").read_text(encoding="utf-8"))
    service = (checkout / "deploy/examples/calculator/service.yaml").read_text(encoding="utf-8")
    assert find_disagreements("7.8.9rc1", checkout) == []
    assert (chart["version"], chart["appVersion"]) == ("7.8.9-rc.1", "7.8.9rc1")
    assert current_version(checkout) == "7.8.9rc1"
    assert "/beckon-tools:7.8.9rc1\n" in service
    assert read_notes("7.8.9rc1", checkout) == "### Added\n\n- One."
    check_tag("v7.8.9rc1", checkout)


def test_a_forgotten_file_is_named(checkout: Path) -> None:
    cut_release("7.8.9", DATE, checkout)
    dockerfile = checkout / "Dockerfile"
    dockerfile.write_text(dockerfile.read_text().replace("VERSION=7.8.9", "VERSION=7.8.8", 1))
    (checkout / "shim/pyproject.toml").write_text('name = "beckon-shim"\n')

    found = find_disagreements("7.8.9", checkout)

    assert found == ["shim/pyproject.toml has no version", "Dockerfile says 7.8.8"]
    with pytest.raises(BadRelease, match=r"the tag is v7\.8\.9, but .*make release VERSION=7\.8\.9"):
        check_tag("v7.8.9", checkout)


def test_the_open_section_gets_number_and_date() -> None:
    first = close_section(OPEN, "1.2.3", DATE)
    second = close_section(first.replace("[Unreleased]\n", "[Unreleased]\n\n- Two.\n", 1), "1.3.0", DATE)

    assert first == OPEN.replace("[Unreleased]\n", "[Unreleased]\n\n## [1.2.3] - 2031-04-05\n")
    assert second.index("## [Unreleased]") < second.index("## [1.3.0]") < second.index("- Two.")
    assert second.index("- Two.") < second.index("## [1.2.3]") < second.index("- One.")


@pytest.mark.parametrize(
    ("changelog", "version", "reason"),
    [
        ("# Changelog\n\n## [Unreleased]\n", "1.2.3", "has nothing under"),
        ("# Changelog\n", "1.2.3", "has nothing under"),
        (f"{OPEN}\n## [1.2.3] - 2030-01-01\n\n- Old.\n", "1.2.3", "not later than 1.2.3"),
        (f"{OPEN}\n## [1.2.3] - 2030-01-01\n\n- Old.\n", "1.2.3rc4", "not later than 1.2.3"),
    ],
)
def test_a_changelog_that_cannot_be_cut_is_refused(changelog: str, version: str, reason: str) -> None:
    with pytest.raises(BadRelease, match=reason):
        close_section(changelog, version, DATE)


def test_a_refused_release_changes_no_file(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n")

    with pytest.raises(BadRelease):
        cut_release("7.8.9", DATE, checkout)

    assert find_disagreements(current_version(), checkout) == []


@pytest.mark.parametrize(
    ("version", "semantic"),
    [
        ("1.2.3", "1.2.3"),
        ("1.2.3rc4", "1.2.3-rc.4"),
        ("1.2.3b1.dev5", "1.2.3-beta.1.dev.5"),
        ("1.2.3.dev4", "1.2.3-dev.4"),
    ],
)
def test_the_chart_has_the_version_as_helm_requires_it(version: str, semantic: str) -> None:
    assert to_semantic(version) == semantic


@pytest.mark.parametrize(
    "words", [["cut", "1.2"], ["check", "v9.9.9"], ["notes", "9.9.9"], ["notes", "Unreleased"]]
)
def test_the_command_refuses_in_one_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
