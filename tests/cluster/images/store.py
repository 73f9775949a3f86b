"""Buildah, with a store of its own: what else is built on this machine neither sees it nor is seen by it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.images.base import Base
from tests.cluster.machine.commands import ClusterError, complaint, output
from tests.cluster.machine.places import Places

# On a file system that a restart empties, as the mounts are: so buildah knows that they are gone.
RUN = Path("/run/beckon-images")
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Every build leaves its layers for the next; beyond so many it is time to begin anew.
MOST_IMAGES = 400


@dataclass(frozen=True)
class Store:
    """Images and layers under `folder`."""

    folder: Path

    def run(self, *words: str | Path) -> str:
        """Run one buildah command on this store."""
        command = ["buildah", "--root", self.folder, "--runroot", RUN, *words]
        defaults = {"STORAGE_DRIVER": "overlay", "BUILDAH_ISOLATION": "chroot", **os.environ}
        return output(command, environment=defaults).strip()

    def base_image(self, base: Base) -> str:
        """The name of the base as an image; imported if it is not there."""
        name = f"localhost/beckon-base:{base.key}"
        if not self.run("images", "--quiet", "--filter", f"reference={name}"):
            container = self.run("from", "scratch")
            self.run("add", "--quiet", container, base.tar, "/")
            self.run("config", "--env", f"PATH={SEARCH_PATH}", "--cmd", "python3", container)
            self.run("commit", "--quiet", "--rm", container, name)
        return name

    def build(
        self, target: str, name: str, *, context: Path, arguments: Mapping[str, str], secrets: Sequence[str]
    ) -> None:
        """Build one target of the Dockerfile in `context` as image `name`."""
        given = [f"--build-arg={key}={value}" for key, value in arguments.items()]
        log = self.folder.with_name("build.log")
        log.unlink(missing_ok=True)
        options = [
            "--network=host",
            "--layers",
            "--force-rm",
            "--pull-never",
            f"--logfile={log}",
            *given,
            *secrets,
        ]
        try:
            self.run("build", *options, "--target", target, "--tag", name, context)
        except ClusterError as error:
            said = complaint(log.read_bytes()) if log.exists() else error
            raise ClusterError(f"the image {name} cannot be built: {said} (all of it: {log})") from None

    def export(self, name: str, tar: Path) -> None:
        """Write an image as a docker-archive; `tar` appears only when it is complete."""
        unfinished = tar.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        self.run("push", "--quiet", name, f"docker-archive:{unfinished}:{name}")
        unfinished.rename(tar)

    @contextmanager
    def mounted(self, tar: Path) -> Iterator[Path]:
        """The root file system of the image in `tar`."""
        container = self.run("from", "--quiet", f"docker-archive:{tar}")
        try:
            yield Path(self.run("mount", container))
        finally:
            self.run("rm", container)

    def trim(self) -> None:
        """Drop every layer where there are too many."""
        if len(self.run("images", "--all", "--quiet").splitlines()) > MOST_IMAGES:
            self.run("rmi", "--all", "--force")


def store(places: Places) -> Store:
    """The store in the cache."""
    return Store(places.cache / "images" / "store")
