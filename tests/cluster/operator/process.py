"""Operators as processes of this machine, against the cluster: what has to be stopped, frozen and killed."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.cluster.kube import until
from tests.cluster.operator.account import Account, free_port

_EXIT = 15.0


@dataclass
class Running:
    """One operator: its process, its log, and where it answers."""

    process: subprocess.Popen[bytes]
    log: Path
    url: str

    def ready(self) -> bool:
        """Whether it has seen everything once; fail if it has ended."""
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
        try:
            return httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def metric(self, line: str) -> float:
        """Return the value of a metric, 0 where it is not there."""
        text = httpx.get(f"{self.url}/metrics", timeout=10).text
        values = [found.rpartition(" ")[2] for found in text.splitlines() if found.startswith(line)]
        return float(values[0]) if values else 0.0

    def leads(self) -> bool:
        """Whether this is the replica that writes."""
        return self.metric("beckon_operator_leader ") == 1.0

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it as Kubernetes does; return its exit code."""
        self.send(signal.SIGTERM)
        return self.process.wait(_EXIT)


@contextmanager
def operator(account: Account, *namespaces: str, reply_triggers: bool = False) -> Iterator[Running]:
    """Run an operator on these namespaces (none: all) to the end of the block; it is ready, and may lead.

    It writes the Triggers for replies only if the test is about them.
    """
    port = free_port()
    environment = {
        **os.environ,
        "KUBECONFIG": str(account.kubeconfig),
        "BECKON_POD_NAMESPACE": account.home.namespace,
        "BECKON_OPERATOR_WATCH_NAMESPACES": ",".join(namespaces),
        "BECKON_OPERATOR_REPLY_TRIGGERS": str(reply_triggers),
        "BECKON_HOST": "127.0.0.1",
        "BECKON_PORT": str(port),
    }
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        command = [sys.executable, "-m", "beckon_operator"]
        with subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process:
            running = Running(process, Path(log.name), f"http://127.0.0.1:{port}")
            try:
                until(running.ready, within=90, what="an operator that is ready")
                yield running
            finally:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                try:
                    process.wait(_EXIT)
                finally:
                    process.kill()
