"""A cluster: objects are read from its API server, and changed with kubectl."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.cluster.reading import ReadingFailed, reader

Found = TypeVar("Found")


class KubectlFailed(AssertionError):
    """kubectl or the API server answered with an error; the message is the request and the answer."""


@dataclass(frozen=True)
class Kube:
    """One cluster: the kubectl to use and its kubeconfig; `namespace` is that of every command."""

    kubectl: Path
    kubeconfig: Path
    namespace: str = "default"

    def within(self, namespace: str) -> "Kube":
        """Return the same cluster with another namespace."""
        return Kube(self.kubectl, self.kubeconfig, namespace)

    def environment(self) -> Mapping[str, str]:
        """Return the environment of a program that is to reach this cluster."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = 120) -> str:
        """Run kubectl and return what it printed; raise `KubectlFailed` with what it said."""
        done = self.attempt(*arguments, stdin=stdin, timeout=timeout)
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def attempt(
        self, *arguments: str, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl and return the finished process, whatever it came to."""
        command = [str(self.kubectl), "--namespace", self.namespace, *arguments]
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment(),
            check=False,
        )

    def apply(self, manifest: str | Path, *flags: str) -> str:
        """Apply a manifest: a file or a folder by its path, or YAML as text."""
        if isinstance(manifest, Path):
            return self.run("apply", *flags, "-f", str(manifest))
        return self.run("apply", *flags, "-f", "-", stdin=manifest)

    def get(self, resource: str, name: str) -> dict[str, Any]:
        """Return an object as the API server has it; raise `KubectlFailed` without it."""
        found = self.find(resource, name)
        if found is None:
            raise KubectlFailed(f"the namespace {self.namespace} has no {resource} {name}")
        return found

    def find(self, resource: str, name: str) -> dict[str, Any] | None:
        """Return an object, `None` where there is none."""
        return self._read(self.namespace, resource, name)

    def managed_fields(self, resource: str, name: str) -> list[dict[str, Any]]:
        """Return which manager has set which fields of an object."""
        found = json.loads(self.run("get", resource, name, "-o", "json", "--show-managed-fields"))
        fields: list[dict[str, Any]] = found["metadata"]["managedFields"]
        return fields

    def list_objects(
        self, resource: str, selector: str = "", *, everywhere: bool = False
    ) -> list[dict[str, Any]]:
        """Return the objects with the labels of a selector, of this namespace or of all."""
        found = self._read("" if everywhere else self.namespace, resource, selector=selector)
        if found is None:
            raise KubectlFailed(f"{resource} are not served any more")
        items: list[dict[str, Any]] = found["items"]
        return items

    def _read(
        self, namespace: str, resource: str, name: str = "", selector: str = ""
    ) -> dict[str, Any] | None:
        try:
            found = reader(self.kubeconfig).read(namespace, resource, name, selector)
        except ReadingFailed as error:
            raise KubectlFailed(str(error)) from None
        for each in found.get("items", (found,)) if found else ():
            each["metadata"].pop("managedFields", None)  # as long as the object, and of interest to few
        return found

    def wait(self, *what: str, condition: str = "Ready", timeout: int = 60) -> None:
        """Wait for a condition with `kubectl wait`; the object must exist."""
        limit = f"--timeout={timeout}s"
        self.run("wait", *what, f"--for=condition={condition}", limit, timeout=timeout + 10)


def wait_until_established(kube: Kube, definition: str) -> None:
    """Wait until the API server serves a CustomResourceDefinition.

    `kubectl wait` fails at once on a definition that has no conditions yet.
    """
    until(
        lambda: condition(kube.find("crd", definition), "Established")[0] == "True",
        what=f"the condition Established of {definition}",
    )


def condition(resource: Mapping[str, Any] | None, name: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition; three empty strings without it."""
    conditions = ((resource or {}).get("status") or {}).get("conditions") or []
    for found in conditions:
        if found["type"] == name:
            return found["status"], found.get("reason", ""), found.get("message", "")
    return "", "", ""


def until(look: Callable[[], Found], *, within: float = 30, what: str = "it") -> Found:
    """Look again and again until something true is seen, and return it; fail after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come about within {within:g} s; last seen: {found!r}")
        time.sleep(0.1)
