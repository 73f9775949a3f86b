"""The agent service as a process beside the cluster, with the rights that it has inside, on a line to cut."""

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.agent.running_agent import user
from tests.agent.scripted_model import KEY
from tests.cluster.kube import Kube
from tests.patience import eventually

ROOT = Path(__file__).resolve().parents[3]
ACCOUNT = "beckon-agent"


def rights(kube: Kube, namespace: str, *secrets: str, with_events: bool = False) -> str:
    """Give an account in `kube`'s namespace the Role of `deploy/` in another one; return what was applied.

    `secrets` are the names that the Role's list holds beside its own. `with_events` adds the rule that the
    chart has for `agent.mcpEvents`.
    """
    documents = list(yaml.safe_load_all((ROOT / "deploy/313-roles-agent.yaml").read_text("utf-8")))
    for document in documents:
        document["metadata"]["namespace"] = namespace
        for rule in document.get("rules", []):
            if rule["resources"] == ["secrets"]:
                rule["resourceNames"] += secrets
        if with_events and document["kind"] == "Role":
            listed = {"apiGroups": ["eventing.knative.dev"], "resources": ["eventtypes"]}
            document["rules"].append({**listed, "verbs": ["list", "watch"]})
        for subject in document.get("subjects", []):
            subject["namespace"] = kube.namespace
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
    kube.apply(json.dumps(account))
    text = yaml.safe_dump_all(documents)
    kube.within(namespace).apply(text)
    return text


def kubeconfig(kube: Kube, folder: Path, server: str | None = None) -> Path:
    """Write a kubeconfig with a token of the account, and nothing of the administrator's."""
    raw = json.loads(kube.run("config", "view", "--raw", "--minify", "-o", "json"))
    cluster = raw["clusters"][0]["cluster"]
    if server is not None:
        cluster = {**cluster, "server": server}
    token = kube.run("create", "token", ACCOUNT, "--duration=1h").strip()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def api_server_of(kube: Kube) -> tuple[str, int]:
    """Return host and port of the API server."""
    raw = json.loads(kube.run("config", "view", "--minify", "-o", "json"))
    url = httpx.URL(raw["clusters"][0]["cluster"]["server"])
    return url.host, url.port or 443


@dataclass
class Line:
    """A TCP relay to the API server that can be cut, and joined again at the same port."""

    target: tuple[str, int]
    port: int = 0
    _server: asyncio.Server | None = None
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    async def join(self) -> None:
        """Let connections through."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """End all connections and take no more."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self.target)
        self._open |= {writer, back}
        try:
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        finally:
            self._open -= {writer, back}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@dataclass
class RunningService:
    """The agent service: its process, what it wrote, and a client."""

    process: asyncio.subprocess.Process
    http: httpx.AsyncClient
    log: Path

    async def post(self, model: str) -> httpx.Response:
        """Ask an agent a question."""
        return await self.http.post("/v1/chat/completions", json={"model": model, "messages": [user("go")]})

    async def serves(self, name: str, within: float = 10, **shown: Any) -> None:
        """Wait until an agent answers, and its model server was sent all this."""
        seen: list[str] = []

        async def as_wanted() -> bool:
            response = await self.post(name)
            seen[:] = [response.text]
            if response.status_code != 200:
                return False
            answer = json.loads(response.json()["choices"][0]["message"]["content"])
            return all(answer[key] == value for key, value in shown.items())

        try:
            await eventually(as_wanted, within)
        except TimeoutError:
            raise AssertionError(f"wanted {shown}, last seen: {seen}") from None

    async def refuses(self, name: str, status: int, said: str, within: float = 10) -> None:
        """Wait until an agent takes no requests, with these words."""

        async def as_wanted() -> bool:
            response = await self.post(name)
            return response.status_code == status and said in response.text

        await eventually(as_wanted, within)

    async def number(self, name: str) -> float:
        """Return one of the numbers of the service."""
        rows = (await self.http.get("/metrics")).text.splitlines()
        return next(float(row.rpartition(" ")[2]) for row in rows if row.startswith(f"{name} "))


@contextlib.asynccontextmanager
async def agent_service(
    config: Path, namespaces: Sequence[str], model: str, **settings: str
) -> AsyncIterator[RunningService]:
    """Run the service on a free port, with the tools of the first namespace; wait until it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "PATH": os.environ["PATH"],
        "KUBECONFIG": str(config),
        "BECKON_NAMESPACES": ",".join(namespaces),
        "BECKON_AGENT_NAMESPACE": namespaces[0],
        "BECKON_PORT": str(port),
        "OPENAI_BASE_URL": model,
        "OPENAI_API_KEY": KEY,
        "BECKON_MODEL": "m",
        **settings,
    }
    log = config.with_name("agent.log")
    with log.open("wb") as said:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "beckon_agent",
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=said,
        )
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as http:

        async def ready() -> bool:
            assert process.returncode is None, log.read_text("utf-8")
            with contextlib.suppress(httpx.TransportError):
                return (await http.get("/readyz")).status_code == 200
            return False

        try:
            await eventually(ready, 30)
            yield RunningService(process, http, log)
        finally:
            process.terminate()
            await asyncio.wait_for(process.wait(), 30)
            assert KEY not in log.read_text("utf-8")
