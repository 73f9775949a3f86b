"""A small API server over real HTTP: lists in pages, watches, Secrets, statuses, tokens, and its bad days.

What only a real one can prove is proved in `tests/cluster`; this one shows how those who follow it
behave when an API server expires versions, hangs up, refuses, or is gone.
"""

import asyncio
import base64
import copy
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiAccess

Document = dict[str, Any]
Key = tuple[str, str, str]
"""Plural, namespace and name."""
Refuse = Callable[[web.Request], tuple[int, str] | None]

_GROUP = "/apis/{group}/{version}"
_TOKENS = "/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"


_IDENTITY = ("uid", "resourceVersion")


def merge(stored: Document, patch: Document) -> Document:
    """Return a document with a JSON merge patch (RFC 7396)."""
    merged = dict(stored)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            known = merged.get(name)
            merged[name] = merge(known if isinstance(known, dict) else {}, value)
        else:
            merged[name] = value
    return merged


@dataclass(frozen=True)
class FixedCredentials:
    """Credentials that never change."""

    fixed: ApiAccess

    async def access(self) -> ApiAccess:
        return self.fixed

    async def renew(self, refused: ApiAccess) -> None:
        return None


@dataclass
class ApiServer:
    """The objects, all requests, and `refuse`: a status for requests that it selects."""

    objects: dict[Key, Document] = field(default_factory=dict)
    secrets: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    statuses: list[tuple[str, Document]] = field(default_factory=list)
    refuse: Refuse = lambda _: None
    issued: list[tuple[str, str]] = field(default_factory=list)
    """The path and the audience of each token; they are called secret-1, secret-2, …"""
    posted: list[Document] = field(default_factory=list)
    """The Events of Kubernetes that were created."""
    kinds: dict[str, dict[str, str]] = field(default_factory=dict)
    """The kinds served in each version of a group: {"v1": {"services": "Service"}}."""
    token_seconds: int = 3600
    watched_from: list[int] = field(default_factory=list)
    """The version that each watch began at."""
    version: int = 1
    oldest: int = 0
    """Versions below this one are expired."""
    url: str = ""
    events: list[tuple[int, str, str, Document]] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)
    _watches: set[asyncio.Task[Any]] = field(default_factory=set)

    @property
    def watches(self) -> int:
        """How many watches there are now."""
        return len(self._watches)

    @property
    def lists(self) -> list[str]:
        """The paths of the requested lists."""
        return [path for method, path in self.requests if method == "LIST"]

    async def put(self, plural: str, document: Document) -> None:
        """Create or change an object; the generation rises with the spec."""
        key = plural, document["metadata"]["namespace"], document["metadata"]["name"]
        before = self.objects.get(key)
        self.version += 1
        made = {"spec": {}, **copy.deepcopy(document)}
        generation = before["metadata"]["generation"] if before else 0
        if before is None or before["spec"] != made["spec"]:
            generation += 1
        if before is not None and plural == "agents":
            made.setdefault("status", before.get("status", {}))
        uid = before["metadata"]["uid"] if before else f"uid-{self.version}"
        made["metadata"] |= {"resourceVersion": str(self.version), "generation": generation, "uid": uid}
        self.objects[key] = made
        await self._send_event("MODIFIED" if before else "ADDED", plural, made)

    async def delete(self, plural: str, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        gone = copy.deepcopy(self.objects.pop((plural, namespace, name)))
        self.version += 1
        gone["metadata"]["resourceVersion"] = str(self.version)
        await self._send_event("DELETED", plural, gone)

    def forget_history(self) -> None:
        """Answer 410 to everybody who asks for what happened until now."""
        self.version += 1
        self.oldest = self.version
        self.events.clear()

    async def hang_up(self) -> None:
        """Cut every watch."""
        for task in list(self._watches):
            task.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)

    async def bookmark(self) -> None:
        """Send the present version to every watch, without an object."""
        self.version += 1
        for plural in {plural for plural, _, _ in self.objects}:
            await self._send_event("BOOKMARK", plural, {"metadata": {"resourceVersion": str(self.version)}})

    async def _send_event(self, kind: str, plural: str, document: Document) -> None:
        async with self._news:
            self.events.append((self.version, kind, plural, document))
            self._news.notify_all()

    def status(self, name: str, namespace: str = "default") -> Document:
        """Return the status of an Agent."""
        found: Document = self.objects["agents", namespace, name].get("status", {})
        return found

    def client(self) -> ApiClient:
        """Return a client of this server."""
        return ApiClient(FixedCredentials(ApiAccess(self.url, "Bearer a-token")), "beckon-test")

    def kubeconfig(self, folder: Path) -> Path:
        """Write a kubeconfig for this server."""
        path = folder / "kubeconfig"
        cluster = {"name": "c", "cluster": {"server": self.url}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        user = {"name": "u", "user": {"token": "a-token"}}
        config: Document = {"apiVersion": "v1", "kind": "Config", "current-context": "c"}
        config |= {"clusters": [cluster], "contexts": [context], "users": [user]}
        path.write_text(json.dumps(config))
        return path

    async def collection(self, request: web.Request) -> web.StreamResponse:
        """Serve a list or a watch."""
        plural, namespace = request.match_info["plural"], request.match_info.get("namespace")
        if request.query.get("watch"):
            return await self._watch(request, plural, namespace)
        self.requests.append(("LIST", request.path))
        if refused := self.refuse(request):
            return _error(*refused)
        begin, limit = int(request.query.get("continue") or 0), int(request.query["limit"])
        found = [
            document
            for (of, within, _), document in sorted(self.objects.items())
            if of == plural and namespace in (None, within)
        ]
        more = str(begin + limit) if begin + limit < len(found) else ""
        metadata = {"resourceVersion": str(self.version), "continue": more}
        return web.json_response({"metadata": metadata, "items": found[begin : begin + limit]})

    async def _watch(self, request: web.Request, plural: str, namespace: str | None) -> web.StreamResponse:
        self.requests.append(("WATCH", request.path))
        if refused := self.refuse(request):
            return _error(*refused)
        response = web.StreamResponse()
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._watches.add(task)
        seen = int(request.query["resourceVersion"])
        self.watched_from.append(seen)
        try:
            if seen < self.oldest:
                status = {"kind": "Status", "code": 410, "message": "too old resource version"}
                await response.write(_line("ERROR", status))
                return response
            while True:
                for version, kind, of, document in await self._after(seen):
                    seen = version
                    within = document["metadata"].get("namespace")
                    if of == plural and (kind == "BOOKMARK" or namespace in (None, within)):
                        await response.write(_line(kind, document))
        finally:
            self._watches.discard(task)

    async def _after(self, version: int) -> list[tuple[int, str, str, Document]]:
        """Wait for events after a version."""
        async with self._news:
            await self._news.wait_for(lambda: any(event[0] > version for event in self.events))
            return [event for event in self.events if event[0] > version]

    async def secret(self, request: web.Request) -> web.Response:
        """Serve a Secret."""
        self.requests.append(("GET", request.path))
        if refused := self.refuse(request):
            return _error(*refused)
        found = self.secrets.get((request.match_info["namespace"], request.match_info["name"]))
        if found is None:
            return _error(404, "secrets not found")
        data = {key: base64.b64encode(text.encode()).decode() for key, text in found.items()}
        return web.json_response({"kind": "Secret", "data": data})

    async def token(self, request: web.Request) -> web.Response:
        """Issue a token for the requested audience."""
        if refused := self.refuse(request):
            return _error(*refused)
        wanted = await request.json()
        (audience,) = wanted["spec"]["audiences"]
        assert wanted["spec"]["expirationSeconds"] == 3600
        self.issued.append((request.path, audience))
        spec = {**wanted["spec"], "expirationSeconds": self.token_seconds}
        status = {"token": f"secret-{len(self.issued)}", "expirationTimestamp": "2026-01-01T00:00:00Z"}
        return web.json_response({**wanted, "spec": spec, "status": status}, status=201)

    async def patch_status(self, request: web.Request) -> web.Response:
        """Merge a status, as a merge patch does."""
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        self.requests.append(("PATCH", request.path))
        assert request.headers["content-type"] == "application/merge-patch+json"
        assert request.headers["authorization"] == "Bearer a-token"
        if refused := self.refuse(request):
            return _error(*refused)
        found = self.objects.get(("agents", namespace, name))
        if found is None:
            return _error(404, "agents not found")
        status = (await request.json())["status"]
        self.statuses.append((f"{namespace}/{name}", status))
        await self.put("agents", {**found, "status": {**found.get("status", {}), **status}})
        return web.json_response(self.objects["agents", namespace, name])

    async def create_object(self, request: web.Request) -> web.Response:
        """Create an object of any kind."""
        plural, namespace = request.match_info["plural"], request.match_info["namespace"]
        self.requests.append(("POST", request.path))
        if refused := self.refuse(request):
            return _error(*refused)
        document = await request.json()
        key = plural, namespace, document["metadata"]["name"]
        if key in self.objects:
            return _error(409, f"{plural} {key[2]} already exists")
        await self.put(plural, document)
        return web.json_response(self.objects[key], status=201)

    async def patch_object(self, request: web.Request) -> web.Response:
        """Replace an object, or merge a patch into it or its status, against the version that it names."""
        key = request.match_info["plural"], request.match_info["namespace"], request.match_info["name"]
        self.requests.append((request.method, request.path))
        if refused := self.refuse(request):
            return _error(*refused)
        found, patch = self.objects.get(key), await request.json()
        if found is None:
            return _error(404, "not found")
        named = patch.get("metadata", {})
        if any(named.get(name, found["metadata"][name]) != found["metadata"][name] for name in _IDENTITY):
            return _error(409, "the object has been modified")
        changed = {"status": patch["status"]} if request.path.endswith("/status") else patch
        await self.put(key[0], patch if request.method == "PUT" else merge(found, changed))
        return web.json_response({**self.objects[key], **_type_of(request)})

    async def delete_object(self, request: web.Request) -> web.Response:
        """Delete an object in the version that the request names."""
        plural, namespace, name = (request.match_info[part] for part in ("plural", "namespace", "name"))
        self.requests.append(("DELETE", request.path))
        if refused := self.refuse(request):
            return _error(*refused)
        found = self.objects.get((plural, namespace, name))
        if found is None:
            return _error(404, "not found")
        named = (await request.json()).get("preconditions", {})
        if any(found["metadata"][field] != value for field, value in named.items()):
            return _error(409, "the object has been modified")
        await self.delete(plural, name, namespace)
        return web.json_response({"kind": "Status", "status": "Success"})

    async def get_object(self, request: web.Request) -> web.Response:
        """Serve one object."""
        key = request.match_info["plural"], request.match_info["namespace"], request.match_info["name"]
        found = self.objects.get(key)
        return web.json_response(found | _type_of(request)) if found else _error(404, f"no {key[0]} {key[2]}")

    async def discover(self, request: web.Request) -> web.Response:
        """Serve the kinds of a group in a version, as `kinds` names them."""
        served = self.kinds.get(request.path.removeprefix("/apis/").removeprefix("/api/"))
        if served is None:
            return _error(404, "the server could not find the requested resource")
        resources = [{"name": plural, "kind": kind} for plural, kind in served.items()]
        return web.json_response({"kind": "APIResourceList", "resources": resources})

    async def event(self, request: web.Request) -> web.Response:
        """Store an Event."""
        if refused := self.refuse(request):
            return _error(*refused)
        self.posted.append(await request.json())
        return web.json_response(self.posted[-1], status=201)

    def application(self) -> web.Application:
        """Return the routes."""
        app = web.Application()
        within = f"{_GROUP}/namespaces/{{namespace}}"
        core, object_path = "/api/v1/namespaces/{namespace}", "{plural}/{name}"
        app.add_routes(
            [
                web.get(f"{_GROUP}/{{plural}}", self.collection),
                web.get(f"{within}/{{plural}}", self.collection),
                web.patch(f"{within}/agents/{{name}}/status", self.patch_status),
                web.post(f"{within}/events", self.event),
                web.get("/api/v1/namespaces/{namespace}/secrets/{name}", self.secret),
                web.post(_TOKENS, self.token),
                web.patch(f"{within}/{object_path}/status", self.patch_object),
                web.post(f"{within}/{{plural}}", self.create_object),
                web.patch(f"{within}/{object_path}", self.patch_object),
                web.put(f"{within}/{object_path}", self.patch_object),
                web.delete(f"{within}/{object_path}", self.delete_object),
                web.get(_GROUP, self.discover),
                web.get("/api/v1", self.discover),
                web.get("/api/v1/{plural}", self.collection),
                web.get(f"{core}/{object_path}", self.get_object),
                web.get(f"{within}/{object_path}", self.get_object),
            ]
        )
        return app


@asynccontextmanager
async def api_server(server: ApiServer | None = None) -> AsyncIterator[ApiServer]:
    """Serve on loopback, at the same port when a server that was there before comes back."""
    running = server or ApiServer()
    runner = web.AppRunner(running.application(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    port = int(running.url.rpartition(":")[2]) if running.url else 0
    listener = socket.create_server(("127.0.0.1", port))
    running.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    await web.SockSite(runner, listener).start()
    try:
        yield running
    finally:
        await running.hang_up()
        await runner.cleanup()


@asynccontextmanager
async def api_server_of(plural: str, *documents: Document) -> AsyncIterator[ApiServer]:
    """Serve these objects of one kind, and what a test makes of them."""
    async with api_server() as server:
        for one in documents:
            await server.put(plural, one)
        yield server


def refusing(message: str, status: int = 403) -> Refuse:
    """Return what refuses every request."""
    return lambda _: (status, message)


def _type_of(request: web.Request) -> Document:
    kinds = {"brokers": "Broker", "triggers": "Trigger", "tools": "Tool"}
    kind = kinds.get(request.match_info["plural"])
    return {"apiVersion": request.path.split("/namespaces/")[0][6:], "kind": kind} if kind else {}


def _line(kind: str, document: Document) -> bytes:
    return json.dumps({"type": kind, "object": document}, ensure_ascii=False).encode() + b"\n"


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": status, "message": message}, status=status)
