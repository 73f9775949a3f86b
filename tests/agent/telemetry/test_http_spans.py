"""The server span of a request: its name, its parent, its end, and what it keeps to itself."""

import asyncio
import functools
from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from opentelemetry.trace import SpanKind, StatusCode
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from beckon_agent.api.http.middleware import RequestIds
from beckon_agent.telemetry.spans import NOT_BY_FASTAPI, TracedRequests
from beckon_runtime.tracing import carried
from tests.agent.telemetry.conftest import Spans
from tests.patience import PATIENCE
from tests.serving import served

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"


async def mounted(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(status_code=204)(scope, receive, send)


MOUNTED = functools.partial(mounted)  # an application: a function would be taken for an endpoint


def application() -> FastAPI:
    app = FastAPI(telemetry=NOT_BY_FASTAPI)

    @app.get("/things/{name}")
    async def thing(name: str) -> dict[str, str]:
        return {"name": name, **carried()}

    for path in ("/mounted", "/mounted/{name:path}"):
        app.router.routes.append(Route(path, MOUNTED))

    @app.get("/healthz")
    async def healthz() -> None: ...

    @app.get("/broken")
    async def broken() -> None:
        raise RuntimeError("secret internals")

    @app.get("/busy")
    async def busy() -> Response:
        return Response(status_code=503)

    @app.get("/slow")
    async def slow() -> Response:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"a"
            await asyncio.sleep(0.05)
            yield b"b"

        return StreamingResponse(pieces())

    return app


@pytest_asyncio.fixture
async def client(spans: Spans) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served(TracedRequests(RequestIds(application()))) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http,
    ):
        yield http


async def test_a_request_is_a_span_named_after_its_route(client: httpx.AsyncClient, spans: Spans) -> None:
    response = await client.get("/things/a%20b?key=secret", headers={"x-request-id": "r-1"})

    span = spans.one("GET /things/{name}")
    assert span.kind is SpanKind.SERVER
    assert span.parent is None
    assert dict(span.attributes or {}) == {
        "http.request.method": "GET",
        "url.path": "/things/a b",
        "http.route": "/things/{name}",
        "http.response.status_code": 200,
        "beckon.request_id": "r-1",
    }
    assert response.json()["traceparent"][36:52] == f"{span.context.span_id:016x}"


@pytest.mark.parametrize(
    ("path", "name"), [("/mounted", "GET /mounted"), ("/mounted/a/b", "GET /mounted/{name}")]
)
async def test_what_is_mounted_beside_fastapi_is_named_after_its_route(
    client: httpx.AsyncClient, spans: Spans, path: str, name: str
) -> None:
    await client.get(path)

    assert spans.one(name).attributes is not None


async def test_the_callers_trace_goes_on(client: httpx.AsyncClient, spans: Spans) -> None:
    await client.get("/things/a", headers={"traceparent": PARENT, "tracestate": "a=b"})

    span = spans.one("GET /things/{name}")
    assert f"{span.context.trace_id:032x}" == TRACE
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT[36:52]
    assert span.context.trace_state.get("a") == "b"


@pytest.mark.parametrize("of_the_request", [None, "00-xyz", PARENT.replace("b7", "c7")])
async def test_the_trace_of_an_event_goes_on_where_the_request_has_none(
    client: httpx.AsyncClient, spans: Spans, of_the_request: str | None
) -> None:
    headers = {"ce-traceparent": PARENT} | ({"traceparent": of_the_request} if of_the_request else {})
    await client.get("/things/a", headers=headers)

    parent = spans.one("GET /things/{name}").parent
    assert parent is not None
    assert f"{parent.trace_id:032x}" == TRACE
    assert f"{parent.span_id:016x}"[:2] == ("c7" if of_the_request and "c7" in of_the_request else "b7")


async def test_a_malformed_trace_of_the_caller_begins_a_new_one(
    client: httpx.AsyncClient, spans: Spans
) -> None:
    response = await client.get("/things/a", headers={"traceparent": "00-xyz"})

    assert response.status_code == 200
    assert spans.one("GET /things/{name}").parent is None


async def test_what_is_requested_the_operation_alone_is_no_span(
    client: httpx.AsyncClient, spans: Spans
) -> None:
    await client.get("/healthz")

    assert spans.names == []


async def test_a_path_without_a_route_does_not_name_a_span(client: httpx.AsyncClient, spans: Spans) -> None:
    await client.get("/" + "x" * 1000)
    await client.request("PROPFIND", "/things/a")

    assert spans.names == ["GET", "_OTHER /things/{name}"]
    first = spans.all[0].attributes or {}
    assert first["url.path"] == "/" + "x" * 199
    assert first["http.response.status_code"] == 404


async def test_a_failure_is_reported_without_its_text(client: httpx.AsyncClient, spans: Spans) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await _answered(client, "/broken")
    await client.get("/busy")

    broken, busy = spans.one("GET /broken"), spans.one("GET /busy")
    assert (broken.status.status_code, busy.status.status_code) == (StatusCode.ERROR, StatusCode.ERROR)
    assert (busy.attributes or {})["error.type"] == "503"
    assert "secret" not in broken.to_json()
    assert not broken.events


async def _answered(client: httpx.AsyncClient, path: str) -> None:
    """Raise where the server broke the connection; an answer with status 500 counts as that, too."""
    response = await client.get(path)
    if response.status_code == 500:
        raise httpx.RemoteProtocolError("answered 500")


async def test_the_span_of_a_stream_lasts_until_its_end(client: httpx.AsyncClient, spans: Spans) -> None:
    async with client.stream("GET", "/slow") as response:
        pieces = response.aiter_raw()
        assert await anext(pieces) == b"a"
        assert spans.names == []
        assert [piece async for piece in pieces] == [b"b"]

    span = spans.one("GET /slow")
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time >= 50_000_000


async def test_requests_are_counted_by_route_and_status_traced_or_not() -> None:
    counted: list[tuple[str, int]] = []
    app = TracedRequests(RequestIds(application()), lambda route, status: counted.append((route, status)))
    async with served(app) as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        for path in ("/things/a", "/things/b", "/busy", "/nowhere/at/all", "/healthz"):
            await http.get(path)

    assert counted == [("/things/{name}", 200), ("/things/{name}", 200), ("/busy", 503), ("", 404)]
