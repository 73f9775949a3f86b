"""Cut a release: `python -m supply_chain.release cut 1.2.3`; its workflow uses `check` and `notes`.

`cut` writes the version to every file that has it and gives the changelog's open section its number and date.
A person commits that and tags the commit. `check` refuses a tag whose files say another version.
"""

import argparse
import datetime
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from supply_chain.packages import ROOT
from supply_chain.sbom import IMAGES, ROOMS

VERSION = re.compile(r"\d+(\.\d+){2}((a|b|rc)\d+)?(\.dev\d+)?")
_OPEN = "## [Unreleased]\n"
_SECTION = re.compile(r"(?m)^## \[(?P<name>[^\]]+)\].*\n")
_PHASES = {"a": "alpha", "b": "beta", "rc": "rc"}


class BadRelease(Exception):
    """A release that cannot be made; the message has the cause and the cure."""


@dataclass(frozen=True, slots=True)
class Place:
    """Files that have the version, and the pattern whose first group it is."""

    files: tuple[str, ...]
    pattern: re.Pattern[str]
    semantic: bool = False

    def spell(self, version: str) -> str:
        """Return the version as these files write it: a chart needs Semantic Versioning."""
        return to_semantic(version) if self.semantic else version

    def write(self, text: str, version: str) -> str:
        """Return the text of one of the files at a version."""
        parts, end = [], 0
        for found in self.pattern.finditer(text):
            parts += [text[end : found.start(1)], self.spell(version)]
            end = found.end(1)
        return "".join([*parts, text[end:]])


PLACES = (
    Place(tuple(f"{room}/pyproject.toml" for room in ROOMS), re.compile(r'(?m)^version = "(.*)"$')),
    Place(("charts/beckon/Chart.yaml",), re.compile(r"(?m)^version: (.*)$"), semantic=True),
    Place(("charts/beckon/Chart.yaml",), re.compile(r"(?m)^appVersion: (.*)$")),
    Place(("Dockerfile",), re.compile(r"(?m)^ARG VERSION=(.*)$")),
    Place(
        ("deploy/**/*.yaml", "docs/*.md", "tools/beckon_tools/shipped/__init__.py"),
        re.compile(rf"beckon-(?:{'|'.join(IMAGES)}):(\d[0-9a-z.]*[0-9a-z])"),
    ),
)


def current_version(root: Path = ROOT) -> str:
    """Return the version of this checkout, that of the command line's package."""
    text = (root / "cli" / "pyproject.toml").read_text(encoding="utf-8")
    found = PLACES[0].pattern.search(text)
    if found is None:
        raise BadRelease("cli/pyproject.toml has no version; write one such as 1.2.3")
    return found[1]


def require_version(text: str) -> str:
    """Return a version of PEP 440 in three numbers, as Beckon's are; raise `BadRelease` for others."""
    if not VERSION.fullmatch(text):
        raise BadRelease(f"{text!r} is no version of a release; write one such as 1.2.3 or 1.2.3rc1")
    return text


def to_semantic(version: str) -> str:
    """Return a version in Semantic Versioning: 1.2.3rc1 is 1.2.3-rc.1, and 1.2.3.dev4 is 1.2.3-dev.4."""
    parsed = Version(version)
    parts = [f"{_PHASES[parsed.pre[0]]}.{parsed.pre[1]}"] if parsed.pre else []
    parts += [f"dev.{parsed.dev}"] if parsed.dev is not None else []
    return "-".join([parsed.base_version, ".".join(parts)]) if parts else parsed.base_version


def find_disagreements(version: str, root: Path = ROOT) -> list[str]:
    """Return a line for each place that has another version, or none."""
    found = []
    for place, path, text in _read_places(root):
        name, wanted = path.relative_to(root), place.spell(version)
        versions = {match[1] for match in place.pattern.finditer(text)}
        found += [f"{name} says {other}" for other in sorted(versions - {wanted})]
        if not versions and "*" not in "".join(place.files):
            found.append(f"{name} has no version")
    return found


def cut_release(version: str, date: datetime.date, root: Path = ROOT) -> None:
    """Write a version everywhere, and close the changelog's open section with it; raise `BadRelease`."""
    require_version(version)
    changelog = root / "CHANGELOG.md"
    closed = close_section(changelog.read_text(encoding="utf-8"), version, date)
    for place, path, text in _read_places(root):
        path.write_text(place.write(text, version), encoding="utf-8")
    changelog.write_text(closed, encoding="utf-8")


def close_section(changelog: str, version: str, date: datetime.date) -> str:
    """Return a changelog whose open section became that of a version; raise `BadRelease`."""
    if not _read_section(changelog, "Unreleased"):
        raise BadRelease(
            f"CHANGELOG.md has nothing under {_OPEN.strip()}; write what changed for users first"
        )
    released = [found["name"] for found in _SECTION.finditer(changelog) if found["name"] != "Unreleased"]
    if released and Version(version) <= max(map(Version, released)):
        raise BadRelease(
            f"{version} is not later than {released[0]}, the last release; choose a later version"
        )
    return changelog.replace(_OPEN, f"{_OPEN}\n## [{version}] - {date.isoformat()}\n", 1)


def read_notes(version: str, root: Path = ROOT) -> str:
    """Return what the changelog says about a release; raise `BadRelease`."""
    notes = _read_section((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if not notes:
        raise BadRelease(f"CHANGELOG.md has no section for {version}; run: make release VERSION={version}")
    return notes


def check_tag(tag: str, root: Path = ROOT) -> None:
    """Raise `BadRelease` unless a tag such as v1.2.3 fits the files and the changelog."""
    version = require_version(tag.removeprefix("v"))
    if wrong := find_disagreements(version, root):
        raise BadRelease(f"the tag is {tag}, but {'; '.join(wrong)}; run: make release VERSION={version}")
    read_notes(version, root)


def _read_section(changelog: str, name: str) -> str:
    sections = list(_SECTION.finditer(changelog))
    for number, found in enumerate(sections):
        if found["name"] == name:
            end = sections[number + 1].start() if number + 1 < len(sections) else len(changelog)
            return changelog[found.end() : end].strip()
    return ""


def _read_places(root: Path) -> Iterator[tuple[Place, Path, str]]:
    for place in PLACES:
        for pattern in place.files:
            for path in sorted(root.glob(pattern)):
                yield place, path, path.read_text(encoding="utf-8")


def main(words: list[str] | None = None) -> int:
    """Run a verb; return 0, or 2 with one line of reason."""
    parser = argparse.ArgumentParser(description="Cut a release, or look at one.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("version", help="print this checkout's version")
    for verb, text in (
        ("cut", "write the version everywhere and close the changelog's open section"),
        ("check", "refuse a tag that the files do not say"),
        ("notes", "print what the changelog says about a release"),
        ("semantic", "print the version as the chart has it"),
    ):
        verbs.add_parser(verb, help=text).add_argument("version", help="such as 1.2.3, or the tag v1.2.3")
    options = parser.parse_args(words)
    try:
        sys.stdout.write(_run_verb(options.verb, getattr(options, "version", "")))
    except BadRelease as error:
        sys.stderr.write(f"release: {error}\n")
        return 2
    return 0


def _run_verb(verb: str, version: str) -> str:
    plain = version.removeprefix("v")
    if verb == "version":
        return f"{current_version()}\n"
    if verb == "notes":
        return f"{read_notes(require_version(plain))}\n"
    if verb == "semantic":
        return f"{to_semantic(require_version(plain))}\n"
    if verb == "check":
        check_tag(version)
        return ""
    cut_release(plain, datetime.datetime.now(datetime.UTC).date())
    return f"CHANGELOG.md and all files say {plain}; commit that, and tag the commit v{plain}\n"


if __name__ == "__main__":
    sys.exit(main())
