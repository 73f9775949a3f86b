"""Container images without a builder: docker archives written by Python, streamed into containerd."""

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.cluster.machine.commands import ClusterError, complaint, output
from tests.cluster.machine.containerd import ctr
from tests.cluster.machine.places import Places

NON_ROOT = "65532:65532"
EPOCH = "1970-01-01T00:00:00Z"
CHUNK = 1 << 20
# Go's names of what the kernel calls otherwise.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

Layer = bytes | Path
"""An uncompressed tar: in memory, or a file."""


@dataclass(frozen=True)
class Image:
    """What an image is made of; `name` is full, with registry and tag."""

    name: str
    layers: tuple[Layer, ...]
    entrypoint: tuple[str, ...]
    user: str = NON_ROOT
    environment: dict[str, str] = field(default_factory=dict)


def program_image(name: str, program: Path, folder: str) -> Image:
    """An image that holds one static program, starts it, and has nothing else."""
    inside = f"{folder}/{program.name}"
    return Image(name, (layer({inside: program}),), (f"/{inside}",))


def layer(files: dict[str, Path], mode: int = 0o755) -> bytes:
    """A layer with these files, by their path in the image; the same files give the same bytes."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for inside, path in files.items():
            entry = tarfile.TarInfo(inside)
            entry.mode, entry.size = mode, path.stat().st_size
            with path.open("rb") as content:
                tar.addfile(entry, content)
    return written.getvalue()


def load(places: Places, archive: Path) -> str:
    """Import a docker archive, so that pods can use its images; return what containerd says of it.

    Names of images should begin with `dev.local/`, which Knative Serving does not look up in a
    registry, and have a tag other than `latest`, which would be pulled.
    """
    return output([*ctr(places), "images", "import", archive]).strip()


def load_built(places: Places, images: Iterable[Image]) -> None:
    """Stream the images into containerd; nothing of them is written to a file on the way."""
    command = [str(word) for word in [*ctr(places), "images", "import", "-"]]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as ctr_:
        assert ctr_.stdin is not None
        assert ctr_.stdout is not None
        broken = False
        try:
            with ctr_.stdin as pipe:
                write_archive(pipe, images)
        except BrokenPipeError:
            broken = True
        said = ctr_.stdout.read()
    if ctr_.returncode or broken:
        raise ClusterError(f"containerd did not take the images: {complaint(said)}")


def write_archive(out: IO[bytes], images: Iterable[Image]) -> None:
    """Write a docker archive (`manifest.json`, a configuration an image, the layers) as one stream."""
    manifest = []
    with tarfile.open(fileobj=out, mode="w|") as tar:
        for image in images:
            digests = [add_layer(tar, one) for one in image.layers]
            config = json.dumps(configuration(image, digests)).encode()
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            add(tar, name, len(config), io.BytesIO(config))
            layers = [f"{digest}.tar" for digest in digests]
            manifest.append({"Config": name, "RepoTags": [image.name], "Layers": layers})
        listed = json.dumps(manifest).encode()
        add(tar, "manifest.json", len(listed), io.BytesIO(listed))


def configuration(image: Image, digests: Sequence[str]) -> dict[str, object]:
    """The image's configuration as the OCI image specification has it."""
    return {
        "created": EPOCH,
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {
            "User": image.user,
            "Entrypoint": list(image.entrypoint),
            "Env": [f"{name}={value}" for name, value in image.environment.items()],
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }


def add_layer(tar: tarfile.TarFile, one: Layer) -> str:
    """Add a layer under the name of its digest, and return the digest."""
    with io.BytesIO(one) if isinstance(one, bytes) else one.open("rb") as content:
        digest = hashlib.sha256()
        while chunk := content.read(CHUNK):
            digest.update(chunk)
        size = content.tell()
        content.seek(0)
        add(tar, f"{digest.hexdigest()}.tar", size, content)
    return digest.hexdigest()


def add(tar: tarfile.TarFile, name: str, size: int, content: IO[bytes]) -> None:
    """Add one file to the archive."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    tar.addfile(entry, content)
