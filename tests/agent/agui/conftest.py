"""An open service with a store, and a client of AG-UI that reads its events by the protocol's own types."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import httpx
import pytest_asyncio
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.tools_for_tests import BENCH

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)


@dataclass(frozen=True, slots=True)
class AguiClient:
    """A client of the default agent."""

    service: ClosedService

    async def post(self, path: str = "/ag-ui", **fields: Any) -> httpx.Response:
        """Post a request with a question, or with other fields."""
        body = {"threadId": "t", "runId": "r", "messages": [user("go")], **fields}
        RunAgentInput.model_validate(body)
        return await self.service.http.post(path, json=body)

    async def run(self, path: str = "/ag-ui", **fields: Any) -> list[Any]:
        """Return the events of a run, each of the protocol's own type."""
        answer = await self.post(path, **fields)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        return read_events(answer.text)


def user(text: str, identity: str = "m") -> dict[str, str]:
    return {"id": identity, "role": "user", "content": text}


def read_events(stream: str) -> list[Any]:
    """Return the events of a stream; comments are left out."""
    blocks = [block for block in stream.split("\n\n") if block.startswith("data: ")]
    return [_EVENT.validate_python(json.loads(block.removeprefix("data: "))) for block in blocks]


def kinds(events: list[Any]) -> list[str]:
    return [event.type.value for event in events]


def text_of(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")


def result_of(events: list[Any]) -> Any:
    """Return the only tool result."""
    (found,) = [event for event in events if event.type == "TOOL_CALL_RESULT"]
    return found


@pytest_asyncio.fixture(loop_scope="module")
async def client(platform: EventPlatform) -> AsyncIterator[AguiClient]:
    """A client of an open service with two agents; the tools have forgotten what they saw."""
    BENCH.reset()
    async with aiohttp.ClientSession() as session:
        checks = make_authenticator(AccessOptions(host="127.0.0.1"), session)
        async with closed_service(platform, {"beckon": terms(), "other": terms()}, checks) as made:
            yield AguiClient(made)
    BENCH.gate.set()
