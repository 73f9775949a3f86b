"""The images as tars, built where the sources have changed."""

import fcntl
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from supply_chain.sbom import IMAGES
from tests.cluster.images.base import base, make
from tests.cluster.images.inputs import ROOT, VERSION, reference, snapshot, tar_name
from tests.cluster.images.lending import lent
from tests.cluster.images.store import store
from tests.cluster.machine import packages
from tests.cluster.machine.commands import ClusterError, Step
from tests.cluster.machine.places import Places, places

PACKAGES = ("buildah", "mmdebstrap")
# Of each image: this checkout's, another's that is under test beside it, and the last one's.
RETAINED = 3


def built_images(where: Places | None = None, root: Path = ROOT) -> Mapping[str, Path]:
    """A docker-archive for each of agent, shim, operator, tools and broker, of the sources in `root`.

    Each holds one image `dev.local/beckon-…`. Takes a moment when nothing has changed, half a minute an image
    from nothing. Needs root and Debian where something is to be built; raises `ClusterError` in one line.
    Safe to call from several processes at once.
    """
    where = where or places()
    folder = where.cache / "images"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock, tempfile.TemporaryDirectory() as context:
        fcntl.flock(lock, fcntl.LOCK_EX)
        snapshot(root, Path(context))
        return _up_to_date(where, folder, Path(context))


def _up_to_date(where: Places, folder: Path, context: Path) -> Mapping[str, Path]:
    foundation = base(where)
    tars = {image: folder / tar_name(image, foundation.key, context) for image in IMAGES}
    missing = {image: tar for image, tar in tars.items() if not tar.exists()}
    if not missing:
        return tars
    if os.geteuid() != 0:
        raise ClusterError("buildah needs root here: use sudo, or build the images yourself by `make images`")
    packages.install(PACKAGES)
    make(foundation)
    built = store(where)
    built.trim()
    arguments = {"BASE": built.base_image(foundation), "VERSION": VERSION}
    with lent() as secrets:
        for image, tar in missing.items():
            with Step(f"images: built {reference(image)}"):
                built.build(image, reference(image), context=context, arguments=arguments, secrets=secrets)
                built.export(reference(image), tar)
            _forget_older(image, folder)
    return tars


def _forget_older(image: str, folder: Path) -> None:
    tars = sorted(folder.glob(f"beckon-{image}-*.tar"), key=lambda tar: tar.stat().st_mtime)
    for tar in tars[:-RETAINED]:
        tar.unlink()
