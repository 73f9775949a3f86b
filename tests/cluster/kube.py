"""kubectl, as the tests and the people who read them use it."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

Found = TypeVar("Found")


class KubectlFailed(AssertionError):
    """kubectl answered with an error; the message is the command and what it said."""


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

    def get(self, *what: str) -> dict[str, Any]:
        """Return an object, or a list of them, as the API server has it."""
        found: dict[str, Any] = json.loads(self.run("get", *what, "-o", "json"))
        return found

    def find(self, *what: str) -> dict[str, Any] | None:
        """Return an object, `None` where there is none."""
        text = self.run("get", *what, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def wait(self, *what: str, condition: str = "Ready", timeout: int = 60) -> None:
        """Wait for a condition with `kubectl wait`; the object must exist."""
        limit = f"--timeout={timeout}s"
        self.run("wait", *what, f"--for=condition={condition}", limit, timeout=timeout + 10)


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
