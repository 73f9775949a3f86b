"""Beckon as it is installed in a cluster, seen from outside: over a port-forward, as a person would."""

import base64
import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI

from tests.cluster.kube import Kube, until

ROOT = Path(__file__).resolve().parents[2]
NAMESPACE = "beckon"
DEPLOYMENTS = ("beckon-operator", "beckon-webhook", "beckon-shim", "beckon-agent")

_FORWARDED = re.compile(r"127\.0\.0\.1:(\d+) ->")


class Forward:
    """A port of a Service on this machine; one that broke off is made again at the next look."""

    def __init__(self, kube: Kube, target: str, port: int) -> None:
        self._kube = kube
        self._command = [
            str(kube.kubectl), "--namespace", kube.namespace, "port-forward", target, f":{port}",
        ]  # fmt: skip
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    @property
    def url(self) -> str:
        """The URL at which it is to be had now."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, text=True, env=dict(self._kube.environment())
            )
            line = self._process.stdout.readline() if self._process.stdout else ""
            found = _FORWARDED.search(line)
            assert found, f"{' '.join(self._command)} said {line!r}"
            self._url = f"http://127.0.0.1:{found[1]}"
        return self._url

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            with self._process as process:
                process.terminate()
            self._process = None


@dataclass(frozen=True)
class Platform:
    """The agent service; the tools of the built-in agent are those of namespace default."""

    kube: Kube
    forward: Forward

    @property
    def url(self) -> str:
        """Where the agent service is to be had."""
        return self.forward.url

    @property
    def key(self) -> str:
        """The API key that a fresh installation has."""
        return first_key(self.kube)

    @property
    def headers(self) -> dict[str, str]:
        """What lets a request in."""
        return {"Authorization": f"Bearer {self.key}"}

    def call(self, tool: str, arguments: Mapping[str, object], timeout: float = 90) -> httpx.Response:
        """Call a tool through the Broker without a model."""
        return httpx.post(
            f"{self.url}/tools/{tool}", json=dict(arguments), headers=self.headers, timeout=timeout
        )

    def stream(self, tool: str, arguments: Mapping[str, object]) -> list[dict[str, Any]]:
        """Call a tool, and return its progress reports and the answer."""
        headers = {**self.headers, "accept": "text/event-stream"}
        return messages(
            httpx.post(f"{self.url}/tools/{tool}", json=dict(arguments), headers=headers, timeout=90)
        )

    def tools(self) -> dict[str, Any]:
        """Return the catalogue as the agent has it now."""
        found: dict[str, Any] = httpx.get(f"{self.url}/tools", headers=self.headers, timeout=30).json()
        return found

    def wait_until_offered(self, *tools: str, within: float = 60) -> None:
        """Wait until a model is offered these tools, and their calls arrive."""
        until(
            lambda: {tool["name"] for tool in self.tools()["tools"]} >= set(tools),
            within=within,
            what=f"{', '.join(tools)} in the agent's catalogue",
        )

    def ask(self, question: str, agent: str = "beckon") -> str:
        """Ask the agent, through the client that most people have, and return its answer."""
        with OpenAI(base_url=f"{self.url}/v1", api_key=self.key, timeout=120) as client:
            answer = client.chat.completions.create(
                model=agent, messages=[{"role": "user", "content": question}]
            )
        return answer.choices[0].message.content or ""


def first_key(kube: Kube) -> str:
    """Return the API key that the operator made, as docs/install.md describes."""
    secret = kube.within(NAMESPACE).get("secret", "beckon-first-key")
    return base64.b64decode(secret["data"]["api-key"]).decode()


def wait_until_installed(kube: Kube) -> None:
    """Wait until every Deployment of Beckon has as many ready replicas as it should."""
    within = kube.within(NAMESPACE)
    for name in DEPLOYMENTS:
        within.run("rollout", "status", f"deployment/{name}", "--timeout=180s", timeout=200)


def messages(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the data of each event of a stream."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream"), answer.text
    return [
        json.loads(line.removeprefix("data: "))
        for line in answer.text.splitlines()
        if line.startswith("data: {")
    ]
