"""The chart as a registry has it: `python -m supply_chain.chart FOLDER --registry REGISTRY`.

A package is made from a copy of `charts/beckon` whose images come from a registry. Its annotations, as
Artifact Hub reads them, name these images and the changes of the version. In its README, the commands name
the chart in the registry, and links that leave the chart become addresses below `--source`.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from packaging.version import Version

from supply_chain.packages import ROOT
from supply_chain.release import BadRelease, current_version, read_notes, to_semantic
from supply_chain.sbom import IMAGES

CHART = Path("charts/beckon")
# A name in lower case with an optional port and path, as the distribution specification has it.
_REGISTRY = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")
_SOURCE = re.compile(r"https://[^\s()]+[^\s()/]")
_KINDS = ("added", "changed", "deprecated", "removed", "fixed", "security")


def stage_chart(folder: Path, registry: str, source: str = "") -> Path:
    """Copy the chart with images of a registry into a folder, and return the copy; raise `BadRelease`."""
    if not _REGISTRY.fullmatch(registry):
        raise BadRelease(
            f"{registry!r} is no registry; write one such as registry.example/team, without https://"
        )
    if source and not _SOURCE.fullmatch(source):
        raise BadRelease(
            f"{source!r} is no address of the sources; write one such as https://git.example/beckon/v1"
        )
    chart = folder / CHART.name
    shutil.copytree(ROOT / CHART, chart)
    _rewrite(chart / "values.yaml", "\n  registry: dev.local\n", f"\n  registry: {registry}\n")
    _run((sys.executable, str(ROOT / "charts" / "generate.py"), str(chart)), "the schema of the values")
    readme = (chart / "README.md").read_text(encoding="utf-8")
    readme = readme.replace(f" {CHART} --", f" {address_of(registry)} --")
    (chart / "README.md").write_text(_rewrite_links(readme, source), encoding="utf-8")
    described = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    described["annotations"] |= describe_release(current_version(), registry)
    (chart / "Chart.yaml").write_text(yaml.safe_dump(described, sort_keys=False), encoding="utf-8")
    return chart


def address_of(registry: str) -> str:
    """Return what Helm's commands write for the chart of this version in a registry."""
    return f"oci://{registry}/charts/beckon --version {to_semantic(current_version())}"


def describe_release(version: str, registry: str) -> dict[str, str]:
    """Return the annotations of one release: its images, its changes, whether it is a prerelease."""
    images = [
        {"name": f"beckon-{image}", "image": f"{registry}/beckon-{image}:{version}"} for image in IMAGES
    ]
    found = {
        "artifacthub.io/prerelease": str(Version(version).is_prerelease).lower(),
        "artifacthub.io/images": yaml.safe_dump(images, sort_keys=False),
    }
    try:
        changes = list_changes(read_notes(version))
    except BadRelease:
        return found  # the section is cut with the release
    return found | {"artifacthub.io/changes": yaml.safe_dump(changes, sort_keys=False, width=1000)}


def list_changes(notes: str) -> list[dict[str, str]]:
    """Return the items of a changelog's section, each with its kind."""
    kind, found = "changed", list[dict[str, Any]]()
    for line in notes.splitlines():
        if line.startswith("### "):
            kind = line.removeprefix("### ").strip().lower()
        elif line.startswith("- "):
            found.append({"kind": kind if kind in _KINDS else "changed", "description": line[2:].strip()})
        elif found and line.startswith("  "):
            found[-1]["description"] += f" {line.strip()}"
    return found


def package_chart(folder: Path, registry: str, source: str, helm: str) -> Path:
    """Package the chart into a folder, and return the package; raise `BadRelease`."""
    if not shutil.which(helm):
        raise BadRelease(f"{helm} is missing; install Helm 3.8 or later, or name it with --helm")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as stage:
        chart = stage_chart(Path(stage), registry, source)
        said = _run((helm, "package", str(chart), "--destination", str(folder)), "the chart")
    return Path(said.rpartition("saved it to: ")[2].strip())


def push_chart(package: Path, repository: str, helm: str, *options: str) -> str:
    """Push a package to `oci://…`, and return the digest by which it can be signed; raise `BadRelease`."""
    done = _run((helm, "push", str(package), repository, *options), f"the push to {repository}", "done")
    digest = re.search(r"Digest: (sha256:[0-9a-f]{64})", done)
    if digest is None:
        raise BadRelease(f"helm named no digest of the chart in {repository}")
    return digest[1]


def _rewrite_links(readme: str, source: str) -> str:
    """Point links out of the chart to the sources; without these only their text stays."""
    outward = re.compile(r"\[([^\]]*)\]\(\.\./\.\./([^)]*)\)")
    return outward.sub(lambda link: f"[{link[1]}]({source}/{link[2]})" if source else link[1], readme)


def _rewrite(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise BadRelease(f"{path.name} must have the line {old.strip()!r} once")
    path.write_text(text.replace(old, new), encoding="utf-8")


def _run(command: tuple[str, ...], what: str, participle: str = "made") -> str:
    """Return what a program printed; helm prints the digest of a push on standard error."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 no user input
    if done.returncode:
        raise BadRelease(f"{what} cannot be {participle}: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout + done.stderr


def main(words: list[str] | None = None) -> int:
    """Package the chart; return 0, or 2 with one line of reason."""
    parser = argparse.ArgumentParser(description="Package the chart for a registry.")
    parser.add_argument("folder", type=Path, help="where the package goes")
    parser.add_argument(
        "--registry", required=True, help="where the images are, such as registry.example/team"
    )
    parser.add_argument("--source", default="", help="the sources of this version, for links of the README")
    parser.add_argument("--helm", default="helm", help="the program (%(default)s)")
    parser.add_argument(
        "--push", default="", help="where to push it, such as oci://registry.example/team/charts"
    )
    parser.add_argument("--plain-http", action="store_true", help="push without TLS")
    options = parser.parse_args(words)
    try:
        package = package_chart(options.folder, options.registry, options.source, options.helm)
        sys.stdout.write(f"{package.stat().st_size / 1024:7.0f} KB  {package}\n")
        if options.push:
            plain = ("--plain-http",) if options.plain_http else ()
            sys.stdout.write(f"{push_chart(package, options.push, options.helm, *plain)}\n")
    except BadRelease as error:
        sys.stderr.write(f"chart: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
