"""A small API server of Brokers and tokens that a test can make forget, refuse and go away.

The real one is in tests/cluster; it cannot be told to lose its history at a given moment.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from lightkube import AsyncClient
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster as KubeCluster
from lightkube.config.models import User

_BROKERS = "/apis/eventing.knative.dev/v1"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def broker(name: str, namespace: str = "shop", **address: str) -> dict[str, Any]:
    """Return a Broker with this address."""
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"namespace": namespace, "name": name},
        "status": {**READY, "address": address} if address else {},
    }


@dataclass(slots=True)
class ApiServer:
    """Brokers by namespace and name; each change goes to those who watch."""

    url: str = ""
    brokers: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    watches: dict[asyncio.Queue[dict[str, Any] | None], str] = field(default_factory=dict)
    lists: int = 0
    refusal: str = ""
    issued: list[tuple[str, str]] = field(default_factory=list)
    token_seconds: int = 3600

    def client(self) -> AsyncClient:
        """Return a client that knows this server, and nothing of the machine that the test runs on."""
        config = KubeConfig.from_one(cluster=KubeCluster(server=self.url), user=User()).get()
        assert config is not None
        return AsyncClient(config=config, trust_env=False)

    def put(self, broker: dict[str, Any]) -> None:
        key = broker["metadata"]["namespace"], broker["metadata"]["name"]
        verb = "MODIFIED" if key in self.brokers else "ADDED"
        self.brokers[key] = broker
        self._tell(verb, broker)

    def remove(self, name: str, namespace: str = "shop", *, untold: bool = False) -> None:
        broker = self.brokers.pop((namespace, name))
        if not untold:
            self._tell("DELETED", broker)

    def forget(self) -> None:
        """End every watch as an API server does that lost its history."""
        status = {"kind": "Status", "status": "Failure", "code": 410, "message": "too old resource version"}
        for watch in list(self.watches):
            watch.put_nowait({"type": "ERROR", "object": status})

    def cut(self) -> None:
        """End every watch without a word."""
        for watch in list(self.watches):
            watch.put_nowait(None)

    def _tell(self, verb: str, broker: dict[str, Any]) -> None:
        for watch, namespace in self.watches.items():
            if namespace in ("", broker["metadata"]["namespace"]):
                watch.put_nowait({"type": verb, "object": _versioned(broker)})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if self.refusal:
            status = {"kind": "Status", "status": "Failure", "code": 403, "message": self.refusal}
            # Not `json_response`, which names a charset: an API server does not.
            body = json.dumps(status).encode()
            return web.Response(body=body, status=403, headers={"content-type": "application/json"})
        if request.path.endswith("/token"):
            return await self._token(request)
        namespace = request.match_info.get("namespace", "")
        if request.query.get("watch") == "true":
            return await self._watch(request, namespace)
        self.lists += 1
        items = [one for key, one in self.brokers.items() if namespace in ("", key[0])]
        return web.json_response({"kind": "BrokerList", "metadata": {"resourceVersion": "7"}, "items": items})

    async def _watch(self, request: web.Request, namespace: str) -> web.StreamResponse:
        assert request.query["resourceVersion"] == "7"
        answer = web.StreamResponse(headers={"content-type": "application/json"})
        await answer.prepare(request)
        with self._watching(namespace) as changes:
            while (change := await changes.get()) is not None:
                await answer.write(json.dumps(change).encode() + b"\n")
        return answer

    @contextlib.contextmanager
    def _watching(self, namespace: str) -> Iterator[asyncio.Queue[dict[str, Any] | None]]:
        changes: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self.watches[changes] = namespace
        try:
            yield changes
        finally:
            del self.watches[changes]

    async def _token(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        (audience,) = wanted["spec"]["audiences"]
        assert wanted["spec"]["expirationSeconds"] == 3600
        self.issued.append((request.path, audience))
        spec = {**wanted["spec"], "expirationSeconds": self.token_seconds}
        status = {"token": f"secret-{len(self.issued)}", "expirationTimestamp": "2026-01-01T00:00:00Z"}
        return web.json_response({**wanted, "spec": spec, "status": status}, status=201)


def _versioned(broker: dict[str, Any]) -> dict[str, Any]:
    return {**broker, "metadata": {**broker["metadata"], "resourceVersion": "8"}}


@contextlib.asynccontextmanager
async def api_server(*brokers: dict[str, Any], port: int = 0) -> AsyncIterator[ApiServer]:
    """Serve these Brokers, and what a test makes of them."""
    server = ApiServer()
    for one in brokers:
        server.put(one)
    app = web.Application()
    app.router.add_get(_BROKERS + "/brokers", server.serve)
    app.router.add_get(_BROKERS + "/namespaces/{namespace}/brokers", server.serve)
    app.router.add_post("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", server.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, reuse_address=True).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        server.cut()
        await runner.cleanup()
