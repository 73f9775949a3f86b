"""What a docker-archive says of itself: its configuration and its sizes."""

import json
import tarfile
import zlib
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

CHUNK = 1 << 20
GZIP = 16 + zlib.MAX_WBITS


@dataclass(frozen=True)
class Size:
    """Bytes of an image.

    `plain` as it lies on a disk, `packed` as a registry sends it, `over_base` on a disk without the base, and
    `upgrade` as a registry sends another version of Beckon with the same dependencies.
    """

    plain: int
    packed: int
    over_base: int
    upgrade: int


def config(tar: Path) -> dict[str, Any]:
    """The image's configuration in the OCI specification's words, and its names as `RepoTags`."""
    with tarfile.open(tar) as archive:
        manifest = json.load(_member(archive, "manifest.json"))[0]
        found: dict[str, Any] = json.load(_member(archive, manifest["Config"]))["config"]
        return {**found, "RepoTags": manifest["RepoTags"]}


def measure(tar: Path, packed: MutableMapping[str, int]) -> Size:
    """The sizes of the image in `tar`; `packed` remembers those of layers, which images share."""
    with tarfile.open(tar) as archive:
        layers = _layers(archive)
        for layer in layers:
            if layer not in packed:
                packed[layer] = _packed(_member(archive, layer))
        plain = [archive.getmember(layer).size for layer in layers]
    sent = [packed[layer] for layer in layers]
    return Size(sum(plain), sum(sent), sum(plain[1:]), sent[-1])


def upgrade_size(tar: Path) -> int:
    """Return the bytes of the top layer of the image in `tar`, packed, which is all that an upgrade sends."""
    with tarfile.open(tar) as archive:
        return _packed(_member(archive, _layers(archive)[-1]))


def _layers(archive: tarfile.TarFile) -> list[str]:
    layers: list[str] = json.load(_member(archive, "manifest.json"))[0]["Layers"]
    return layers


def _packed(layer: IO[bytes]) -> int:
    gzip = zlib.compressobj(wbits=GZIP)
    total = 0
    while chunk := layer.read(CHUNK):
        total += len(gzip.compress(chunk))
    return total + len(gzip.flush())


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    found = archive.extractfile(name)
    if found is None:
        raise ValueError(f"{name} in {archive.name!r} is not a file")
    return found
