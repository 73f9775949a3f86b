"""Bills of materials in CycloneDX 1.5: `python -m supply_chain.sbom FOLDER`, one file an image and a wheel.

`--debian IMAGE=FILE` adds the packages of an image's base, as `dpkg-query` lists them. The same locks
give the same bytes: there is no time in a file, and its serial number is made of its content.
"""

import argparse
import json
import sys
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from supply_chain.packages import (
    ROOT,
    BadLock,
    Package,
    needed_by,
    own_packages,
    read_debian,
    read_lock,
    read_page_lock,
)

IMAGES = {
    "agent": ("contract", "runtime", "sources", "demo", "agent"),
    "shim": ("contract", "runtime", "sources", "shim"),
    "operator": ("contract", "runtime", "sources", "operator"),
    "tools": ("contract", "runtime", "sources", "tools", "adapter"),
    "broker": ("contract", "runtime", "sources", "broker"),
}
ROOMS = (
    "contract",
    "runtime",
    "sources",
    "broker",
    "shim",
    "operator",
    "agent",
    "demo",
    "tools",
    "adapter",
    "cli",
)
_NAMESPACE = uuid.UUID("5b9e1b2a-3f5e-5d7c-9a43-0c7d7c0f2a11")


def bill(kind: str, name: str, version: str, packages: Iterable[Package]) -> dict[str, Any]:
    """Return the bill of materials of a `container` or a `library`."""
    ordered = sorted(set(packages), key=lambda one: one.purl)
    described: dict[str, Any] = {"type": kind, "bom-ref": f"{kind}:{name}", "name": name, "version": version}
    if kind == "library":
        described["purl"] = Package("pypi", name, version).purl
    described["licenses"] = [{"license": {"id": "Apache-2.0"}}]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": described},
        "components": [_component(one) for one in ordered],
        "dependencies": [{"ref": described["bom-ref"], "dependsOn": [one.purl for one in ordered]}],
    }
    serial = uuid.uuid5(_NAMESPACE, json.dumps(document, sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "serialNumber": f"urn:uuid:{serial}",
    } | document


def of_image(image: str, debian: str = "") -> dict[str, Any]:
    """Return the bill of materials of an image; `debian` is what `dpkg-query` says of its base."""
    own = own_packages(IMAGES[image])
    packages = [*own, *read_lock(ROOT / image / "requirements.lock"), *read_debian(debian)]
    if image == "agent":
        packages += read_page_lock(ROOT / "agent" / "package-lock.json")
    return bill("container", f"beckon-{image}", own[-1].version, packages)


def of_wheel(room: str) -> dict[str, Any]:
    """Return the bill of materials of a room's wheel, with all that it needs."""
    (own,) = own_packages([room])
    packages = needed_by(own.name)
    if room == "agent":
        packages += read_page_lock(ROOT / "agent" / "package-lock.json")
    return bill("library", own.name, own.version, packages)


def _component(package: Package) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "purl": package.purl,
    }
    if package.sha512:
        component["hashes"] = [{"alg": "SHA-512", "content": package.sha512}]
    if package.license:
        component["licenses"] = [{"expression": package.license}]
    return component


def main(arguments: list[str] | None = None) -> int:
    """Write the files; return 0, or 2 with one line of reason."""
    parser = argparse.ArgumentParser(
        prog="python -m supply_chain.sbom", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("folder", type=Path, help="where the files are written")
    parser.add_argument("--debian", action="append", default=[], metavar="IMAGE=FILE")
    chosen = parser.parse_args(arguments)
    try:
        listed = {
            image: Path(file).read_text("utf-8")
            for image, _, file in (one.partition("=") for one in chosen.debian)
        }
        bills = {f"beckon-{image}.image.cdx.json": of_image(image, listed.get(image, "")) for image in IMAGES}
        bills |= {f"beckon-{room}.wheel.cdx.json": of_wheel(room) for room in ROOMS}
        chosen.folder.mkdir(parents=True, exist_ok=True)
        for name, document in bills.items():
            (chosen.folder / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except (BadLock, OSError, ValueError) as error:
        sys.stderr.write(f"make sbom: {error}\n")
        return 2
    sys.stdout.write(f"{len(bills)} bills of materials are in {chosen.folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
