"""Wheels of every room: `python -m supply_chain.wheels FOLDER`, of which `beckon-cli` is the one to install.

Each is built from a copy of its room, in which all rooms have one version and need each other at it. The
wheel of the command line has the examples of `deploy/`, which `beckon up` starts where there is no such
folder. The same sources give the same bytes. Where no release is named, other sources have another version:
installers cache a wheel by its version, and would mix the wheels of two builds.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from supply_chain.packages import ROOT, distribution_of
from supply_chain.release import BadRelease, current_version, require_version
from supply_chain.sbom import ROOMS

_EXAMPLES = Path("deploy/examples")
_VENDORED = Path("agent/beckon_agent/page/vendor")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules", "*.pyc", ".*")
_OWN = re.compile(r'(?<!name = )"(beckon-[a-z]+)(\[[a-z,]+\])?"')


def build_wheels(folder: Path, release: str | None = None) -> list[Path]:
    """Build the wheels of all rooms into a folder, at the version of a release, and return their paths.

    Without a release the version is the checkout's and a digest of the sources, `0.1.0+b1f0a93c27de`: a
    local version (PEP 440), which an index such as PyPI refuses. Raises `BadRelease`.
    """
    if release is not None:
        require_version(release)
    if not (ROOT / _VENDORED / "LICENCES.txt").exists():
        raise BadRelease(f"{_VENDORED} is empty, and the agent's page would not load; run: make page")
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*.whl"))
    for old in before:
        old.unlink()
    with tempfile.TemporaryDirectory() as stage:
        rooms = [_stage_room(room, Path(stage)) for room in ROOMS]
        version = release or f"{current_version()}+b{digest_of(Path(stage))[:12]}"
        for room in rooms:
            pyproject = room / "pyproject.toml"
            pinned = pin_version(pyproject.read_text(encoding="utf-8"), version)
            pyproject.write_text(pinned, encoding="utf-8")
            _build_wheel(room, folder.resolve())
    return sorted(folder.glob("*.whl"))


def pin_version(pyproject: str, version: str) -> str:
    """Return a room's `pyproject.toml` at a version; what it needs of Beckon has the same one."""
    stated = re.sub(r'(?m)^version = ".*"$', f'version = "{version}"', pyproject, count=1)
    return _OWN.sub(lambda found: f'"{found[1]}{found[2] or ""}=={version}"', stated)


def digest_of(folder: Path) -> str:
    """Return the SHA-256 of the names and contents of a folder's files, in hexadecimal."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def _stage_room(room: str, stage: Path) -> Path:
    """Copy a room with all that its wheel has, and return the copy."""
    copy = stage / room
    shutil.copytree(ROOT / room, copy, ignore=_LEFT_OUT)
    shutil.copy(ROOT / "LICENSE", copy)
    if room == "cli":
        shutil.copytree(ROOT / _EXAMPLES, copy / "beckon_cli" / "examples")
        shutil.copy(ROOT / "README.md", copy)
        pyproject = copy / "pyproject.toml"
        text = pyproject.read_text(encoding="utf-8")
        described = text.replace("license = ", 'readme = "README.md"\nlicense = ', 1)
        pyproject.write_text(described, encoding="utf-8")
    return copy


def _build_wheel(room: Path, folder: Path) -> None:
    command = (sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder))
    built = subprocess.run(command, cwd=room, capture_output=True, text=True, check=False)  # noqa: S603 our own
    if built.returncode:
        raise BadRelease(f"the wheel of {distribution_of(room.name)} is not built: {built.stderr.strip()}")


def main() -> int:
    """Build the wheels; return 0, or 2 with one line of reason."""
    parser = argparse.ArgumentParser(description="Build a wheel of every room.")
    parser.add_argument("folder", type=Path, help="where they go; wheels that are there are removed")
    parser.add_argument(
        "--release", help="the version of all of them; without it, the checkout's and a digest of the sources"
    )
    options = parser.parse_args()
    try:
        for wheel in build_wheels(options.folder, options.release):
            sys.stdout.write(f"{wheel.stat().st_size / 1024:7.0f} KB  {wheel}\n")
    except BadRelease as error:
        sys.stderr.write(f"wheels: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
