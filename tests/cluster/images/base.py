"""The base image where no registry can be reached: a small Debian with Python and the CA certificates."""

import fcntl
import hashlib
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.machine.commands import Step, output
from tests.cluster.machine.places import Places

RELEASE = "bookworm"
# usr-is-merged, with the hook that merges first, spares the merging program and its Perl.
PACKAGES = ("usr-is-merged", "apt", "ca-certificates", "python3")
HOOKS = "/usr/share/mmdebstrap/hooks/merged-usr"
LEFT_OUT = (
    "/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*",
    "/usr/share/lintian/*", "/usr/share/bash-completion/*", "/usr/lib/*/gconv/*",
)  # fmt: skip
# What making it leaves of this machine, and where apt looks instead.
REMOVED = (
    "etc/hostname", "etc/resolv.conf", "etc/apt/sources.list.d/*", "var/cache/debconf/*",
    "var/lib/dpkg/*-old", "var/log/*",
)  # fmt: skip
HOST_SOURCES = Path("/etc/apt/sources.list.d/debian.sources")
# An image's apt looks where that of this machine does, so that no address is written here.
SOURCES = HOST_SOURCES.read_text(encoding="utf-8") if HOST_SOURCES.exists() else ""


@dataclass(frozen=True)
class Base:
    """A root file system in `tar`; `key` is the same as long as its recipe is."""

    tar: Path
    key: str


def base(places: Places) -> Base:
    """The base and its place in the cache; `make` it before use."""
    recipe = (RELEASE, *PACKAGES, *LEFT_OUT, *REMOVED, SOURCES)
    key = hashlib.sha256("\0".join(recipe).encode()).hexdigest()[:16]
    return Base(places.cache / "base" / f"python-{key}.tar", key)


def make(base: Base) -> None:
    """Have mmdebstrap make the base (20 seconds) if it is not there.

    Safe to call from several processes at once: the others wait for the one that makes it.
    """
    base.tar.parent.mkdir(parents=True, exist_ok=True)
    with base.tar.with_name("python.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not base.tar.exists():
            with Step(f"images: made the base, Debian {RELEASE} with Python"):
                _make(base.tar)


def host_sources() -> Path | None:
    """Where this machine's apt finds the release of the base; None where it is another system."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME")
    return HOST_SOURCES if release == RELEASE and HOST_SOURCES.exists() else None


def _make(tar: Path) -> None:
    """Write `tar`; it appears only when it is complete."""
    unfinished = tar.with_name("python-unfinished.tar")
    with tempfile.TemporaryDirectory() as folder:
        neutral = Path(folder, "debian.sources")
        neutral.write_text(SOURCES)
        options = [
            "--mode=root",
            "--variant=essential",
            f"--hook-dir={HOOKS}",
            f"--include={','.join(PACKAGES)}",
            *(f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT),
            f'--customize-hook=cd "$1" && rm -rf {" ".join(REMOVED)}',
            f"--customize-hook=upload {neutral} /etc/apt/sources.list.d/debian.sources",
        ]
        sources = [source] if (source := host_sources()) else []
        output(["mmdebstrap", *options, RELEASE, unfinished, *sources])
    unfinished.rename(tar)
