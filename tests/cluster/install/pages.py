"""The commands of a page, run in their order as a reader runs them."""

import re
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.cluster.chart.charts import ROOT
from tests.cluster.install.releases import Helm
from tests.docs.blocks import blocks


class Shell:
    """The two terminals of a reader who follows a page."""

    def __init__(self, helm: Helm, stack: ExitStack, folder: Path = ROOT) -> None:
        self.folder = folder
        self._environment = {**helm.environment(), "OPENAI_API_KEY": "sk-example"}
        self._stack = stack
        self._port = free_port()
        self._forwarding: subprocess.Popen[str] | None = None

    def run(self, command: str) -> str:
        """Run a command of a page and return what it prints; a port-forward stays, in the other terminal."""
        command = command.replace("127.0.0.1:8080", f"127.0.0.1:{self._port}").replace(
            "8080:80", f"{self._port}:80"
        )
        if "port-forward" in command:
            return self._forward(command)
        exported = re.match(r"export (\w+)=", command)
        if exported:
            name = exported[1]
            self._environment[name] = self._done(f'{command}; printf %s "${name}"')
            return ""
        return self._done(command)

    def _done(self, command: str) -> str:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr or done.stdout}"
        return done.stdout

    def _forward(self, command: str) -> str:
        if self._forwarding is not None:
            self._forwarding.terminate()
            self._forwarding.wait(30)
        command = command.removesuffix(" &")
        process = self._stack.enter_context(
            subprocess.Popen(
                ["sh", "-c", f"exec {command}"], env=self._environment, stdout=subprocess.PIPE, text=True
            )
        )
        self._stack.callback(process.terminate)
        self._forwarding = process
        return process.stdout.readline() if process.stdout else ""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def commands(page: Path, heading: str = "") -> list[str]:
    """Return the commands for a cluster on a page, or under one of its headings."""
    text = page.read_text(encoding="utf-8")
    first, last = 0, text.count("\n")
    if heading:
        start = text.index(f"\n## {heading}\n") + 1
        first = text.count("\n", 0, start)
        following = text.find("\n## ", start)
        last = text.count("\n", 0, following) if following > 0 else last
    return [
        command
        for block in blocks(page)
        if block.language == "console" and block.mark == "cluster" and first < block.line <= last + 1
        for command, _ in block.commands
    ]
