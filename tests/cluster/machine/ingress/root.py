"""The root file system of the ingress image: Python and nginx out of Debian's packages, made once, cached."""

import fcntl
from pathlib import Path

from tests.cluster.machine.commands import Step, output
from tests.cluster.machine.places import Places

RELEASE = "bookworm"
PACKAGES = "python3,nginx"
LEFT_OUT = ("doc", "man", "locale")
MERGED_FOLDERS = "/usr/share/mmdebstrap/hooks/merged-usr"


def root(places: Places) -> Path:
    """The tar of the root file system, made by mmdebstrap (half a minute) when the cache does not have it.

    Safe to call from several processes at once: the others wait for the one that makes it.
    """
    folder = places.cache / "base"
    folder.mkdir(parents=True, exist_ok=True)
    tar = folder / f"ingress-{RELEASE}.tar"
    with (folder / "ingress.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not tar.exists():
            with Step("ingress: made the root file system of its image"):
                make(tar)
    return tar


def make(tar: Path) -> None:
    """Unpack the packages and what they need into `tar`, which appears only when it is complete."""
    unfinished = tar.with_name("ingress-unfinished.tar")
    without = [f"--dpkgopt=path-exclude=/usr/share/{folder}/*" for folder in LEFT_OUT]
    command = ["mmdebstrap", "--mode=root", "--variant=extract", f"--hook-dir={MERGED_FOLDERS}", *without]
    output([*command, f"--include={PACKAGES}", RELEASE, unfinished, *mirror()])
    unfinished.rename(tar)


def mirror() -> list[str]:
    """The mirror of this machine's apt; none, and thus Debian's own, when it has another release."""
    listed = output(["apt-get", "indextargets", "--format", "$(RELEASE) $(COMPONENT) $(REPO_URI)"])
    for line in listed.splitlines():
        codename, component, uri = line.split(maxsplit=2)
        if (codename, component) == (RELEASE, "main"):
            return [uri]
    return []
