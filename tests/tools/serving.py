"""Real servers on loopback for the tests of the tools."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import httpx

from beckon_contract.cloudevents.events import CloudEvent, from_http, to_binary
from beckon_tools.app import app
from beckon_tools.declaration import AnyTool
from beckon_tools.settings import Settings
from tests.patience import PATIENCE
from tests.serving import served

JSON = "application/json"


def configured(**changes: object) -> Settings:
    """Return the default settings with these changes, whatever the environment."""
    return Settings.model_construct().model_copy(update=changes)


@dataclass
class Caller:
    """Posts events to one tool, as a broker does."""

    client: httpx.AsyncClient

    async def post(self, event: CloudEvent) -> httpx.Response:
        headers, body = to_binary(event)
        return await self.client.post("/", headers=headers, content=body)

    async def reply(self, event: CloudEvent) -> CloudEvent:
        response = await self.post(event)
        assert response.status_code == 200, response.text
        return from_http(response.headers.raw, response.content)

    async def result(self, event: CloudEvent) -> object:
        return (await self.reply(event)).json()

    async def refusal(self, event: CloudEvent) -> str:
        """Return the message of the reply to a call that the tool refused for its arguments."""
        reply = await self.reply(event)
        assert reply.extensions.get("replyid") == event.extensions.get("correlationid")
        document = reply.json()
        assert isinstance(document, dict), document
        assert document["error"]["reason"] == "invalid_arguments", document
        return str(document["error"]["message"])


@asynccontextmanager
async def calling(tool: AnyTool, **settings: object) -> AsyncIterator[Caller]:
    """Serve a tool and give a caller of it."""
    async with (
        served(app(tool, configured(**settings))) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client,
    ):
        yield Caller(client)


def call(event_type: str, arguments: object = None, *, id: str = "call-1", **more: str | int) -> CloudEvent:  # noqa: A002 - the attribute's name
    """Build the event of a call with a correlation; `more` are further extensions."""
    return CloudEvent(
        id=id,
        source="/beckon/agents/default/agent",
        type=event_type,
        datacontenttype=JSON,
        data=None if arguments is None else json.dumps(arguments).encode(),
        extensions={"correlationid": "token-1", **more},
    )


@dataclass
class WebService:
    """A web service that answers by path, and records its requests."""

    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    headers: list[tuple[str, str]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    user_agents: list[str] = field(default_factory=list)

    def will_answer(self, path: str, document: object, status: int = 200) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.answers[path] = (status, body)

    async def __call__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[dict[str, Any]]],
        send: Callable[[dict[str, Any]], Awaitable[None]],
    ) -> None:
        if scope["type"] != "http":
            return
        path, query = scope["path"], scope["query_string"].decode()
        self.requests.append((path, {name: values[0] for name, values in parse_qs(query).items()}))
        self.user_agents.append(dict(scope["headers"])[b"user-agent"].decode())
        status, body = self.answers.get(path, (404, b"no such path"))
        raw = [(name.encode(), value.encode()) for name, value in self.headers]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        await send({"type": "http.response.body", "body": body})
