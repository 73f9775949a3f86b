"""A broker, a shim that hands late replies to an agent, and a service that takes calls and answers later."""

import asyncio
import json
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
from aiohttp import web

from beckon_agent.agents.folder import FolderSource
from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.api.events.owed_answers import AnswerSender, SendingPace
from beckon_agent.api.events.request import EventRules
from beckon_agent.api.mcp.server import McpSettings
from beckon_agent.app import RunStorage, build_app
from beckon_agent.core.records import NewRun
from beckon_agent.core.run_types import Agent, Limits, Options
from beckon_agent.durable.base import Ask
from beckon_agent.durable.engine import EnginePace, RunEngine
from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.store.sql.open import open_store
from beckon_agent.telemetry.metrics import Metrics
from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_agent.tool_calls.caller import Dispatcher, ToolCaller
from beckon_tools.app import app as tool_app
from tests.agent.event_platform import declared, described
from tests.agent.long.shop import order_thing, rhyme, wrap_thing
from tests.agent.running_agent import QUICK, Still, open_door, user
from tests.agent.scripted_model import KEY as MODEL_KEY
from tests.agent.scripted_model import ReceivedRequest, Script, ScriptedModel, scripted_model
from tests.broker.broker_process import (
    Manifest,
    RunningBroker,
    broker,
    delivery,
    running_broker,
    service,
    trigger,
)
from tests.patience import PATIENCE, eventually
from tests.serving import served
from tests.shim.support import KEY, Posted, Shim, serving, shim_in_front_of
from tests.shim.support import Server as ByHand
from tests.tools.serving import configured

BEAT = EnginePace(hold=0.6, beat=0.15, look=0.05)
SENDING = SendingPace(look=0.1, first_pause=0.02, longest_pause=0.1)
_QUESTION = '{"type": "object", "properties": {"question": {"type": "string"}}}'
ON_POSTGRESQL = pytest.mark.parametrize("database", ["postgresql"], indirect=True)
"""For modules about the requests of clients: those about processes that die run on both databases."""
LIMITS = Limits(call_timeout=30)
"""A reply whose process has died reaches the next one after 4 s, and on a busy machine much later."""


@dataclass(slots=True)
class LongTool:
    """A service that answers calls with `state`: `accepted` announces a later answer."""

    by_hand: ByHand
    broker: RunningBroker
    state: str = "accepted"
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def calls(self) -> list[Posted]:
        """The calls that it was sent, repeated deliveries among them."""
        return [posted for posted in self.by_hand.posts if "ce-correlationid" in posted.headers]

    def call(self, kind: str) -> Posted:
        """Return the only call of a type."""
        (found,) = [call for call in self.calls if call.headers["ce-type"] == kind]
        return found

    async def called(self, times: int = 1) -> Posted:
        """Wait until it was called so often, and return the last call."""

        async def was() -> bool:
            return len(self.calls) >= times

        await eventually(was)
        return self.calls[-1]

    async def take(self, call: Posted) -> web.Response:
        """Take a call, once the gate is open."""
        await self.gate.wait()
        headers = reply(call)
        if call.headers["ce-type"] != "danger":
            headers["ce-beckonstate"] = self.state
        return web.Response(body=b"{}", headers=headers)

    async def answer(self, call: Posted, result: object, **headers: str) -> int:
        """Send the answer of a call to the Broker."""
        sent = {**reply(call), **headers}
        body = json.dumps(result).encode()
        return (await self.broker.request("POST", "/default/default", body, sent)).status

    async def report(self, call: Posted, done: float) -> int:
        """Send a report of how far a call is to the Broker."""
        body = json.dumps({"progress": done, "total": 3, "message": f"page {done}"}).encode()
        return (await self.broker.request("POST", "/default/default", body, report(call))).status


def report(call: Posted) -> dict[str, str]:
    """Return the headers of a report of a call."""
    return {
        "ce-specversion": "1.0",
        "ce-id": secrets.token_hex(8),
        "ce-source": "/reports",
        "ce-type": f"{call.headers['ce-type']}.progress",
        "ce-beckonprogress": call.token,
        "ce-beckonstate": "progress",
        "ce-causationid": call.headers["ce-id"],
        "content-type": "application/json",
    }


def reply(call: Posted) -> dict[str, str]:
    """Return the headers of a reply to a call."""
    return {
        "ce-specversion": "1.0",
        "ce-id": secrets.token_hex(8),
        "ce-source": "/reports",
        "ce-type": f"{call.headers['ce-type']}.reply",
        "ce-replyid": call.token,
        "ce-causationid": call.headers["ce-id"],
        "content-type": "application/json",
    }


@dataclass(slots=True)
class LongAgent:
    """An agent of this rig that serves."""

    model: ScriptedModel
    store: Store
    service: Service
    engine: RunEngine
    http: httpx.AsyncClient

    @property
    def requests(self) -> list[ReceivedRequest]:
        return self.model.requests

    async def post(self, given: object = "go", **body: Any) -> dict[str, Any]:
        """Ask for a response."""
        request = {"model": "beckon", "input": given, "include": ["mcp_call"], **body}
        answer = await self.http.post("/v1/responses", json=request)
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    async def until(self, response_id: str, status: str) -> dict[str, Any]:
        """Return a response once it has this status."""
        document: dict[str, Any] = {}

        async def has_it() -> bool:
            document.update((await self.http.get(f"/v1/responses/{response_id}")).json())
            return bool(document["status"] == status)

        await eventually(has_it)
        return document

    async def waits(self, run_id: str) -> None:
        """Wait until a run is held by no one, because its tool answers later."""

        async def is_suspended() -> bool:
            run = await self.store.runs.get(run_id)
            return run is not None and run.status == "suspended"

        await eventually(is_suspended)

    async def waiting_forms(self, field: str) -> list[dict[str, Any]]:
        """Return the forms that wait for a person once one of them has this field."""
        found: list[dict[str, Any]] = []

        async def has_come() -> bool:
            found[:] = (await self.http.get("/inputs")).json()["data"]
            return any(field in form["schema"]["properties"] for form in found)

        await eventually(has_come)
        return found

    def results_sent(self, turn: int = -1) -> list[str]:
        """Return the results of tools in the model's request of a turn."""
        messages = self.requests[turn].body["messages"]
        return [message["content"] for message in messages if message["role"] == "tool"]


@dataclass(slots=True)
class Rig:
    """The parts that run while agents come and go; `port` is theirs.

    With `answers_later` they know a Broker for answers to events whose runs had to wait.
    """

    tool: LongTool
    shim: Shim
    folder: Path
    url: str
    port: int
    answers_later: bool = True

    @asynccontextmanager
    async def agent(
        self,
        *script: Script,
        limits: Limits = LIMITS,
        through: Callable[[Store], Store] | None = None,
        mcp: McpSettings | None = None,
    ) -> AsyncIterator[LongAgent]:
        """Serve an agent at the address that the shim knows, until the end of the block.

        `through` puts something between it and its store.
        """
        async with AsyncExitStack() as stack:
            opened = await open_store(self.url)
            stack.push_async_callback(opened.aclose)
            store: Store = through(opened) if through else opened
            model, service = await self._service(stack, script, limits)
            session = await stack.enter_async_context(aiohttp.ClientSession())
            rules = EventRules(sink=f"{self.tool.broker.url}/default/default" if self.answers_later else "")
            answers = AnswerSender(store, session, service.registry, rules, "default", SENDING)
            holder = f"test-{secrets.token_hex(4)}"
            engine = RunEngine(store, service, holder, BEAT, owes_answer=answers.owes_answer)
            storage = RunStorage(store, engine, rules, ReplyKeys(KEY), answers=answers)
            app = build_app(service, open_door, max_request_bytes=200_000, mcp=mcp, storage=storage)
            url = await stack.enter_async_context(served(app, self.port))
            http = await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=PATIENCE))
            yield LongAgent(model, store, service, engine, http)

    @asynccontextmanager
    async def worker(self, store: Store, *script: Script) -> AsyncIterator[tuple[RunEngine, Service]]:
        """Run the engine of another replica, which takes no requests, over a store that may fail it."""
        async with AsyncExitStack() as stack:
            _, service = await self._service(stack, script, LIMITS)
            engine = RunEngine(store, service, f"test-{secrets.token_hex(4)}", BEAT)
            working = asyncio.create_task(engine.serve())
            try:
                yield engine, service
            finally:
                working.cancel()
                await asyncio.gather(working, return_exceptions=True)

    async def _service(
        self, stack: AsyncExitStack, script: tuple[Script, ...], limits: Limits
    ) -> tuple[ScriptedModel, Service]:
        model = await stack.enter_async_context(scripted_model(*script))
        client = await stack.enter_async_context(ModelClient(model.base_url, MODEL_KEY, "m", patience=QUICK))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        agent = Agent("beckon", "default", "You are a test.", limits)
        tools = Still(FolderSource([self.folder], agent.source).current)
        registry = SingleAgent(
            AgentHandle("beckon", agent, DialectModel(client, "native"), tools), asyncio.Event().wait
        )
        return model, Service(
            registry, ToolCaller(Dispatcher(session, self.shim.url)), Metrics(), max_runs=16
        )


async def begin_run(engine: RunEngine, service: Service) -> str:
    """Begin a run of the agent in the background, and return its id."""
    hosted = service.registry.find("beckon")
    assert isinstance(hosted, AgentHandle)
    new = NewRun(id="run_1", owner="", agent="beckon", face="test", input=[user("go")], background=True)
    await engine.start(Ask(new, hosted, Options()))
    return new.id


@asynccontextmanager
async def running_rig(folder: Path, url: str) -> AsyncIterator[Rig]:
    """Run everything but agents."""
    async with AsyncExitStack() as stack:
        port = stack.enter_context(_reserved_port())
        by_hand = await stack.enter_async_context(serving())
        in_shop: list[Manifest] = []
        for one in (order_thing, wrap_thing, rhyme):
            address = await stack.enter_async_context(served(tool_app(one, configured())))
            in_shop += declared(one, address)
        manifests = [
            *in_shop,
            *described("report", "reports"),
            *described("danger", "reports", requires_approval="true"),
            *described("hurried", "reports", timeout="1.5s"),
            *described("ask", "agent", parameters=_QUESTION),
            service("reports", by_hand.url),
            service("agent", f"http://127.0.0.1:{port}/events/beckon"),
        ]
        running = await stack.enter_async_context(running_broker(folder, *manifests))
        sink = f"http://127.0.0.1:{port}/late-replies"
        shim = await stack.enter_async_context(shim_in_front_of(running.url, late_reply_sink=sink))
        replies = trigger(
            "replies",
            f"{shim.replies}/replies",
            filter={"attributes": {"replyid": ""}},
            delivery=delivery(retry=8),
        )
        dead_letters = delivery(retry=1, sink=f"{shim.replies}/dead-letters")
        progress = trigger(
            "progress", f"{shim.replies}/progress", filter={"attributes": {"beckonprogress": ""}}
        )
        running.write(*manifests, broker(delivery=dead_letters), replies, progress)

        async def replies_are_routed() -> bool:
            return bool((await running.trigger_status("progress")).get("ready"))

        await eventually(replies_are_routed)
        tool = LongTool(by_hand, running)
        by_hand.behaviour = tool.take
        tool.gate.set()
        yield Rig(tool, shim, folder, url, port)


@contextmanager
def _reserved_port() -> Iterator[int]:
    """Keep a port on which no one listens from everybody who does not name it."""
    with socket.socket() as placeholder:
        placeholder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        placeholder.bind(("127.0.0.1", 0))
        yield placeholder.getsockname()[1]
