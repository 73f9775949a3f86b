"""Write the page of the agent's HTTP API from its OpenAPI description: `python docs/api_page.py`."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

import httpx

from beckon_agent.agents.registry import AgentRegistry
from beckon_agent.api.request_fields import CHAT, RESPONSES, fields_of
from beckon_agent.app import RunStorage, build_app
from beckon_agent.durable.engine import RunEngine
from beckon_agent.service import Service
from beckon_agent.store.sql.open import open_store
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.caller import ToolCaller

_HEAD = """\
# The agent's HTTP API: every route

This page is made by `make docs` from what the agent serves at `/openapi.json`, where the schemas are, too.
[Clients](clients.md) shows the routes at work, [access](access.md) their credentials, [MCP](mcp.md) `/mcp`.
Errors below `/v1` have OpenAI's shape, others are problem documents (RFC 9457).
Every answer has `x-request-id`.
"""
_FIELDS_HEAD = """
## The fields of a request

The agent sends each field of the `openai` package on to the model's server, does it itself, or refuses it.
A refused field is an error 400 with the name of the field, unless it is null or has its default.
So is a field of the other API.
If the model's server refuses a field that changes the answer, the request fails with the code
`field_not_supported` and the name of the field.
The agent ignores fields that OpenAI does not have.
"""
_GROUPS = (
    ("Responses and conversations", ("/v1/responses", "/v1/conversations")),
    ("Chat completions and models", ("/v1/",)),
    ("Runs and approvals", ("/runs", "/approvals")),
    ("Tools", ("/tools", "/catalogue")),
    ("AG-UI", ("/ag-ui", "/agents")),
    ("Events", ("/events", "/feed", "/late-replies")),
    ("The service itself", ("/",)),
)


async def description() -> dict[str, Any]:
    """Return the OpenAPI description of an agent that stores its runs."""
    store = await open_store("sqlite://")
    try:
        unused = cast("AgentRegistry", None)  # used by requests, and none comes
        service = Service(unused, cast("ToolCaller", None), Metrics(), 1)
        served = build_app(
            service,
            lambda app: app,
            max_request_bytes=1024,
            storage=RunStorage(store, RunEngine(store, service, "-"), stored_events=1),
        )
        transport = httpx.ASGITransport(served)
        async with httpx.AsyncClient(transport=transport, base_url="http://agent") as http:
            found: dict[str, Any] = (await http.get("/openapi.json")).json()
        return found
    finally:
        await store.aclose()


def page(document: Mapping[str, Any]) -> str:
    """Return the page as Markdown."""
    left = dict(document["paths"])
    parts = [_HEAD]
    for title, starts in _GROUPS:
        mine = [path for path in left if path.startswith(starts)]
        parts.append(f"\n## {title}\n\n| route | what it does | answers |\n| --- | --- | --- |\n")
        parts += [row for path in mine for row in _rows(path, left.pop(path))]
    return "".join([*parts, *_field_tables()])


def _field_tables() -> Iterator[str]:
    yield _FIELDS_HEAD
    for title, api in (("Chat completions", CHAT), ("Responses", RESPONSES)):
        yield f"\n### {title}\n\n| field | treatment | meaning, or reason |\n| --- | --- | --- |\n"
        for field in sorted(fields_of(api), key=lambda field: field.name):
            yield f"| `{field.name}` | {field.treatment} | {field.meaning} |\n"


def _rows(path: str, methods: Mapping[str, Any]) -> Iterator[str]:
    for method, operation in methods.items():
        if method == "parameters":
            continue
        parameters = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        query = f" Query: {', '.join(f'`{name}`' for name in parameters)}." if parameters else ""
        statuses = ", ".join(operation["responses"])
        what = " ".join(str(operation.get("description", operation["summary"])).split("\n\n")[0].split())
        yield f"| `{method.upper()} {path}` | {what.replace('|', chr(92) + '|')}{query} | {statuses} |\n"


if __name__ == "__main__":
    sys.stdout.write(page(asyncio.run(description())))
