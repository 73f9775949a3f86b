"""Beckon as it is installed in a cluster, seen from outside: over a port-forward, as a person would."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

from tests.cluster.kube import Kube

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "beckon"
DEPLOYMENTS = ("beckon-operator", "beckon-webhook", "beckon-shim", "beckon-agent")

_FORWARDED = re.compile(r"127\.0\.0\.1:(\d+) ->")


@dataclass(frozen=True)
class Platform:
    """The agent service at `url`; the tools of the built-in agent are those of namespace default."""

    kube: Kube
    url: str

    def call(self, tool: str, arguments: Mapping[str, object], timeout: float = 90) -> httpx.Response:
        """Call a tool through the Broker without a model."""
        return httpx.post(f"{self.url}/tools/{tool}", json=dict(arguments), timeout=timeout)

    def tools(self) -> dict[str, Any]:
        """Return the catalogue as the agent has it now."""
        found: dict[str, Any] = httpx.get(f"{self.url}/tools", timeout=30).json()
        return found

    def ask(self, question: str, agent: str = "beckon") -> str:
        """Ask the agent, through the client that most people have, and return its answer."""
        with OpenAI(base_url=f"{self.url}/v1", api_key="none", timeout=120) as client:
            answer = client.chat.completions.create(
                model=agent, messages=[{"role": "user", "content": question}]
            )
        return answer.choices[0].message.content or ""


@contextmanager
def forwarded(kube: Kube, target: str, port: int) -> Iterator[str]:
    """Forward a port of a Service or Pod to this machine, and give its URL."""
    command = [str(kube.kubectl), "--namespace", kube.namespace, "port-forward", target, f":{port}"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=dict(kube.environment())
    ) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            found = _FORWARDED.search(line)
            assert found, f"{' '.join(command)} said {line!r}"
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.terminate()


def wait_until_installed(kube: Kube) -> None:
    """Wait until every Deployment of Beckon has as many ready replicas as it should."""
    within = kube.within(NAMESPACE)
    for name in DEPLOYMENTS:
        within.run("rollout", "status", f"deployment/{name}", "--timeout=180s", timeout=200)
