"""A plain HTTP API that knows nothing of events, and the adapter before it, both really serving."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import httpx2
import trustme

from beckon_adapter.app import AdapterApp, Backends
from beckon_adapter.declaration import RuleRegistry, declare_tool, has_rule
from beckon_adapter.egress.client import CheckedNetwork, CheckedTransport, EgressClient, Resolve
from beckon_adapter.egress.hosts import Credential, Credentials, allow_hosts
from beckon_adapter.request import HttpRequest
from beckon_adapter.rule import NamedServer
from beckon_contract.kubernetes_objects import Resource, from_object
from beckon_runtime.egress import AllowedHost
from tests.patience import PATIENCE
from tests.serving import served
from tests.tools.serving import Caller, configured

LIMIT = 10_000
SECRET = "s3cr3t-of-the-owner"


@dataclass(frozen=True)
class ApiRequest:
    """One request that the API had."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class ApiAnswer:
    """One answer that the API gives."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    breaks_off: bool = False


def api_answer(
    document: object, status: int = 200, *headers: tuple[str, str], kind: str = "application/json"
) -> ApiAnswer:
    """Build an answer: bytes as they are, anything else as JSON."""
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return ApiAnswer(status, body, (("content-type", kind), *headers))


@dataclass
class PlainApi:
    """Gives these answers in order, repeats the last one, and records the requests."""

    answers: list[ApiAnswer] = field(default_factory=lambda: [api_answer({})])
    requests: list[ApiRequest] = field(default_factory=list)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        query = scope["query_string"].decode()
        path = scope["raw_path"].decode() + (f"?{query}" if query else "")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append(ApiRequest(scope["method"], path, headers, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await asyncio.sleep(answer.seconds)
        raw = [(name.encode(), value.encode()) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        await send({"type": "http.response.body", "body": answer.body, "more_body": answer.breaks_off})
        if answer.breaks_off:
            raise ConnectionAbortedError


@asynccontextmanager
async def serving(api: PlainApi, tls: tuple[str, str] | None = None) -> AsyncIterator[int]:
    """Serve an API on loopback, over TLS with a certificate and a key file; give its port."""
    async with served(api, lifespan="off", tls=tls) as url:
        yield int(url.rpartition(":")[2])


def answering(*addresses: Sequence[str]) -> Resolve:
    """Return a resolver that gives these answers in their order, the last one for ever."""
    left = list(addresses)

    async def resolve(name: str, port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return resolve


def egress_to(
    *hosts: AllowedHost,
    credentials: Sequence[Credential] = (),
    resolver: Resolve | None = None,
    tls: ssl.SSLContext | None = None,
) -> EgressClient:
    """Return a client for these hosts."""
    allowed = allow_hosts(hosts)
    network = CheckedNetwork(allowed, resolver) if resolver else CheckedNetwork(allowed)
    transport = CheckedTransport(network, 10, tls)
    client = httpx2.AsyncClient(transport=transport, timeout=None, trust_env=False)
    return EgressClient(client, allowed, Credentials(credentials), LIMIT)


@asynccontextmanager
async def closing(egress: EgressClient) -> AsyncIterator[EgressClient]:
    """Yield a client, and close its connections at the end."""
    async with egress.client:
        yield egress


def get(url: str, *headers: tuple[str, str], method: str = "GET", body: bytes = b"") -> HttpRequest:
    """Build a request."""
    return HttpRequest(method, url, headers, body)


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    """Trust one authority only."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def event_type(
    rule: object, parameters: object = None, *, name: str = "asked", namespace: str = "default", **more: str
) -> Resource:
    """Return an EventType with a rule; `more` are annotations under beckon.dev."""
    written = rule if isinstance(rule, str) else json.dumps(rule)
    annotations = {
        "beckon.dev/http": written,
        "beckon.dev/parameters": json.dumps(parameters or {"type": "object"}),
        **{f"beckon.dev/{key}": value for key, value in more.items()},
    }
    return from_object(
        {
            "apiVersion": "eventing.knative.dev/v1beta2",
            "kind": "EventType",
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {"type": "api.asked", "description": "Ask the API."},
        }
    )


@dataclass
class GivenSource:
    """A source that a test fills by hand."""

    book: RuleRegistry
    ready: bool = True

    async def follow(self) -> None:
        await asyncio.Event().wait()

    async def catch_up(self) -> None:
        return None

    async def close(self) -> None:
        return None


@asynccontextmanager
async def adapting(
    egress: EgressClient, *resources: Resource, servers: Sequence[NamedServer] = (), **settings: object
) -> AsyncIterator[Caller]:
    """Serve an adapter with these EventTypes, and give a caller of it."""
    carrying = Backends(egress, servers)
    book = RuleRegistry(has_rule, lambda resource: declare_tool(resource, carrying.by_annotation))
    book.replace(resources)
    app = AdapterApp(book, GivenSource(book), carrying, configured(**settings))
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client:
        yield Caller(client)


@asynccontextmanager
async def before(api: PlainApi, path: str = "/", **rule: object) -> AsyncIterator[Caller]:
    """Serve an API, and an adapter with one EventType whose rule leads to a path of it."""
    async with serving(api) as port:
        sent = event_type({"url": f"http://api.test:{port}{path}", **rule})
        async with adapting(egress_to(local(port)), sent) as adapter:
            yield adapter


def local(port: int, **more: object) -> AllowedHost:
    """Allow an API on loopback under the name `api.test`."""
    return AllowedHost.model_validate(
        {"host": f"http://api.test:{port}", "connect": f"127.0.0.1:{port}", **more}
    )
