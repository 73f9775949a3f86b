"""What goes into an image, and the name that its content gives it."""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from supply_chain.release import current_version
from supply_chain.sbom import IMAGES

ROOT = Path(__file__).resolve().parents[3]
VERSION = current_version()

RECIPE = ("Dockerfile", ".dockerignore", "requirements-build.lock")


def reference(image: str) -> str:
    """The name of an image inside its tar, which manifests write."""
    return f"dev.local/beckon-{image}:{VERSION}"


def tar_name(image: str, base: str, root: Path) -> str:
    """The file name of an image's tar: the same for the same sources on the same base, another for others."""
    digest = hashlib.sha256(base.encode())
    for path in _files(image, root):
        for part in (str(path.relative_to(root)).encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8))
            digest.update(part)
    return f"beckon-{image}-{VERSION}-{digest.hexdigest()[:16]}.tar"


def snapshot(root: Path, folder: Path) -> None:
    """Copy what the images are made of into `folder`, which no edit reaches while they are built."""
    made = shutil.ignore_patterns("__pycache__", "*.pyc", "node_modules", "vendor")  # the build makes its own
    for name in RECIPE:
        shutil.copy2(root / name, folder)
    for room in {room for rooms in IMAGES.values() for room in rooms}:
        shutil.copytree(root / room, folder / room, ignore=made)


def _files(image: str, root: Path) -> Iterator[Path]:
    yield from (root / name for name in RECIPE)
    for room in IMAGES[image]:
        for path in sorted((root / room).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                yield path
