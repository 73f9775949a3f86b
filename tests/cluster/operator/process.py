"""Operators as processes of this machine, against the cluster: what has to be stopped, frozen and killed."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.cluster.kube import Kube, until

_EXIT = 15.0


@dataclass
class Running:
    """One operator: its process, its log, and where it answers."""

    process: subprocess.Popen[bytes]
    log: Path
    url: str

    def metric(self, line: str) -> float:
        """Return the value of a metric, 0 where it is not there."""
        text = httpx.get(f"{self.url}/metrics", timeout=10).text
        values = [found.rpartition(" ")[2] for found in text.splitlines() if found.startswith(line)]
        return float(values[0]) if values else 0.0

    def leads(self) -> bool:
        """Whether this is the replica that writes."""
        return self.metric("beckon_operator_leader") == 1.0

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def stop(self) -> int:
        """End it as Kubernetes does; return its exit code."""
        self.send(signal.SIGTERM)
        return self.process.wait(_EXIT)

    def memory(self) -> int:
        """Return how many bytes it holds."""
        return int(psutil.Process(self.process.pid).memory_info().rss)
