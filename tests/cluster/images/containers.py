"""Running an image as a strict cluster would: its own user, nothing to write to, no capability."""

import json
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.images.archive import config
from tests.cluster.images.store import Store
from tests.cluster.machine.commands import output

# Seconds: of a program that answers once, and of one that gets a signal to stop.
PATIENCE = 60
STATE = Path("/run/beckon-images/runc")


@dataclass(frozen=True)
class Image:
    """An image laid open: its configuration, and its files below `root`."""

    config: Mapping[str, Any]
    root: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it to its end."""
        with self.started(command) as process:
            printed, complained = process.communicate(timeout=PATIENCE)
            return subprocess.CompletedProcess(command, process.returncode, printed, complained)

    @contextmanager
    def started(
        self, command: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> Iterator[subprocess.Popen[str]]:
        """Run a command in it, or the image's own, as process 1; killed at the end if it still runs.

        It shares this machine's network; its signals are those that the returned process gets.
        """
        name = f"beckon-{secrets.token_hex(6)}"
        with tempfile.TemporaryDirectory() as bundle:
            output(["runc", "spec", "--bundle", bundle])
            spec = Path(bundle, "config.json")
            words = [*(command or self.config["Entrypoint"])]
            spec.write_text(json.dumps(self._strict(json.loads(spec.read_text()), words, environment or {})))
            runc = ["runc", "--root", str(STATE)]
            with subprocess.Popen(
                [*runc, "run", "--bundle", bundle, name],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as process:
                try:
                    yield process
                finally:
                    if process.poll() is None:
                        output([*runc, "delete", "--force", name])

    def _strict(self, spec: Any, words: Sequence[str], environment: Mapping[str, str]) -> Any:
        user, _, group = self.config["User"].partition(":")
        added = [f"{name}={value}" for name, value in environment.items()]
        spec["root"] = {"path": str(self.root), "readonly": True}
        spec["process"] |= {
            "terminal": False,
            "user": {"uid": int(user), "gid": int(group)},
            "args": list(words),
            "env": [*self.config["Env"], *added],
            "cwd": self.config.get("WorkingDir") or "/",
            "capabilities": {},
            "noNewPrivileges": True,
        }
        spec["linux"]["namespaces"] = [
            each for each in spec["linux"]["namespaces"] if each["type"] != "network"
        ]
        return spec


@contextmanager
def opened(store: Store, tar: Path) -> Iterator[Image]:
    """The image in `tar`, ready to run."""
    if not shutil.which("runc"):
        raise FileNotFoundError("runc is not on this machine")
    with store.mounted(tar) as root:
        yield Image(config(tar), root)
