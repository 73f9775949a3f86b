"""The packages of an image or a wheel, read from the locks and from what is installed."""

import base64
import importlib.metadata
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
# Images are Linux, whatever the machine that makes the bill of materials; the oldest Python sets the rest.
IMAGE_ENVIRONMENT = {
    "sys_platform": "linux",
    "platform_system": "Linux",
    "os_name": "posix",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "python_version": "3.11",
    "python_full_version": "3.11.0",
}
_ENTRY = re.compile(r"^(?P<requirement>[^\s#][^\\\n]*?)\s*\\?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Package:
    """One package at one version; `kind` as in a package URL: pypi, npm or deb."""

    kind: str
    name: str
    version: str
    sha512: str = ""
    license: str = ""
    qualifiers: str = ""

    @property
    def purl(self) -> str:
        """The package URL, https://github.com/package-url/purl-spec."""
        name = "/".join(quote(part, safe="") for part in self.name.split("/"))
        name = f"debian/{name}" if self.kind == "deb" else name
        return f"pkg:{self.kind}/{name}@{quote(self.version, safe='.')}{self.qualifiers}"


class BadLock(Exception):
    """A lock that cannot be read; the text says which line."""


def read_lock(path: Path) -> list[Package]:
    """Return what a `requirements.lock` installs on Linux; raise `BadLock` or `OSError`."""
    found = []
    for entry in _ENTRY.finditer(path.read_text(encoding="utf-8")):
        text = entry["requirement"]
        try:
            requirement = Requirement(text)
        except ValueError as error:
            raise BadLock(f"{path}: not a requirement: {text!r}; run `make lock`") from error
        (pin,) = requirement.specifier or [None]
        if pin is None or pin.operator != "==":
            raise BadLock(f"{path}: {text!r} has no exact version; run `make lock`")
        if requirement.marker is None or requirement.marker.evaluate(IMAGE_ENVIRONMENT):
            found.append(Package("pypi", canonicalize_name(requirement.name), pin.version))
    return found


def read_page_lock(path: Path) -> list[Package]:
    """Return what a `package-lock.json` installs without its development part."""
    packages = json.loads(path.read_text(encoding="utf-8"))["packages"]
    found = []
    for place, entry in packages.items():
        if place and not entry.get("dev"):
            name = place.rpartition("node_modules/")[2]
            algorithm, _, digest = entry.get("integrity", "").partition("-")
            sha512 = base64.b64decode(digest).hex() if algorithm == "sha512" else ""
            found.append(Package("npm", name, entry["version"], sha512, entry.get("license", "")))
    return found


def read_debian(text: str) -> list[Package]:
    """Return the packages of an image's Debian; `text` has name, version and architecture in a line."""
    lines = (line.split() for line in text.splitlines() if line.strip())
    return [Package("deb", name, version, qualifiers=f"?arch={arch}") for name, version, arch in lines]


def distribution_of(room: str) -> str:
    """Return the name under which a room is installed."""
    return f"beckon-{room}"


def own_packages(rooms: Iterable[str]) -> list[Package]:
    """Return the wheels of rooms, at the version that is installed here."""
    names = (distribution_of(room) for room in rooms)
    return [Package("pypi", name, importlib.metadata.version(name), license="Apache-2.0") for name in names]


def needed_by(name: str) -> list[Package]:
    """Return all that a distribution needs, directly or not, at the versions that are installed here."""
    environment: dict[str, str] = {name: str(value) for name, value in default_environment().items()}
    seen: set[str] = set()
    waiting = [(name, frozenset[str]())]
    found: dict[str, Package] = {}
    while waiting:
        current, extras = waiting.pop()
        key = f"{current}[{','.join(sorted(extras))}]"
        if key in seen:
            continue
        seen.add(key)
        distribution = importlib.metadata.distribution(current)
        if current != name:
            found[current] = Package("pypi", current, distribution.version)
        for line in distribution.requires or ():
            requirement = Requirement(line)
            marker = requirement.marker
            chosen = (*extras, "")
            if marker is None or any(marker.evaluate({**environment, "extra": one}) for one in chosen):
                waiting.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return sorted(found.values(), key=lambda one: one.name)
