"""Known vulnerabilities of what the locks pin: `python -m supply_chain.audit`, by the database of OSV.

Exit code 0 where none is known, 1 where there are some, 2 where the database cannot be queried. It is
sent names and versions of public packages and nothing else.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from supply_chain.packages import ROOT, BadLock, Package, read_lock, read_page_lock

SERVICE = "https://api.osv.dev"
LOCKS = (
    "requirements.lock",
    "requirements-build.lock",
    "agent/node.lock",
    "cli/beckon_cli/local/local_model.lock",
)
PAGE_LOCK = "agent/package-lock.json"
_SECONDS = 30.0
_BATCH = 500  # OSV takes 1,000 queries a request


class Unreachable(Exception):
    """The database cannot be queried; the text is one line."""


def pinned(root: Path = ROOT) -> list[Package]:
    """Return every package of every lock, once."""
    found = [package for lock in LOCKS for package in read_lock(root / lock)]
    return sorted({*found, *read_page_lock(root / PAGE_LOCK)}, key=lambda one: one.purl)


def vulnerabilities(packages: Sequence[Package], service: str) -> dict[Package, list[str]]:
    """Return the ids of the known vulnerabilities of each package that has some; raise `Unreachable`."""
    found: dict[Package, list[str]] = {}
    for start in range(0, len(packages), _BATCH):
        batch = packages[start : start + _BATCH]
        answer = _query(service, {"queries": [{"package": {"purl": one.purl}} for one in batch]})
        results = answer.get("results")
        if not isinstance(results, list) or len(results) != len(batch):
            raise Unreachable(f"{service} answered without a result for each package")
        for package, result in zip(batch, results, strict=True):
            ids = [str(one["id"]) for one in result.get("vulns") or ()]
            if ids:
                found[package] = sorted(ids)
    return found


def _query(service: str, question: Mapping[str, object]) -> dict[str, Any]:
    try:
        response = httpx.post(f"{service.rstrip('/')}/v1/querybatch", json=question, timeout=_SECONDS)
        response.raise_for_status()
        answer = response.json()
    except httpx.HTTPStatusError as error:
        raise Unreachable(f"{service} answered {error.response.status_code}") from error
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise Unreachable(f"{service} cannot be queried: {reason}") from error
    if not isinstance(answer, dict):
        raise Unreachable(f"{service} answered something else than an object")
    return answer


def main(arguments: list[str] | None = None) -> int:
    """Print what is known; return the exit code of the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="python -m supply_chain.audit", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument(
        "--service", default=os.environ.get("OSV_URL") or SERVICE, help="the address of the database"
    )
    service = parser.parse_args(arguments).service
    try:
        packages = pinned()
        found = vulnerabilities(packages, service)
    except (Unreachable, BadLock, OSError) as error:
        sys.stderr.write(
            f"make audit: nothing was checked: {error}; it needs a network that reaches the database, "
            "or OSV_URL with the address of a copy\n"
        )
        return 2
    for package, ids in found.items():
        sys.stdout.write(f"{package.kind} {package.name} {package.version}: {', '.join(ids)}\n")
    sys.stdout.write(f"{len(packages)} packages, {len(found)} with known vulnerabilities\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
