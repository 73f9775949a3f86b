"""The chart as Helm renders it, and objects as tests look at them."""

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
CHART = ROOT / "charts" / "beckon"
DEPLOY = ROOT / "deploy"
# Without a cluster Helm takes an old version, unless a flag names one.
KUBERNETES = "1.34.0"

Object = dict[str, Any]
Key = tuple[str, str, str]


class Refused(Exception):
    """Helm refuses these values; the message is what it says."""


@dataclass(frozen=True)
class Chart:
    """A chart, and the Helm that renders it."""

    helm: Path
    folder: Path = CHART

    def run(self, *arguments: str, given: Mapping[str, object] | None = None) -> str:
        """Run Helm without a cluster and return what it prints; raise `Refused`."""
        done = subprocess.run(
            [str(self.helm), *arguments, *(["--values", "-"] if given is not None else [])],
            input=json.dumps(given) if given is not None else None,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout

    def text(self, given: Mapping[str, object] | None = None, namespace: str = "beckon") -> str:
        """Return the manifest of a release with these values, the tests left out."""
        words = ("template", "beckon", str(self.folder), "--namespace", namespace)
        return self.run(*words, "--kube-version", KUBERNETES, "--skip-tests", given=given or {})

    def render(
        self, given: Mapping[str, object] | None = None, namespace: str = "beckon"
    ) -> dict[Key, Object]:
        """Return the objects of a release with these values, the tests left out."""
        return by_key(read_documents(self.text(given, namespace)))


def read_documents(text: str) -> list[Any]:
    """Return the documents of YAML, read by libyaml: in Python, those of one manifest take a second."""
    return list(yaml.load_all(text, Loader=yaml.CSafeLoader))


def by_key(objects: Iterable[Object | None]) -> dict[Key, Object]:
    """Return objects by kind, namespace and name; fail where two are the same."""
    found: dict[Key, Object] = {}
    for each in filter(None, objects):
        metadata = each["metadata"]
        key = (each["kind"], metadata.get("namespace", ""), metadata["name"])
        assert key not in found, f"twice: {key}"
        found[key] = each
    return found
