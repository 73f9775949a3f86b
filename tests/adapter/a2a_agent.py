"""An A2A agent of the protocol's SDK, with a card and JSON-RPC of the versions 1.0 and 0.3."""

import asyncio

from a2a.helpers.proto_helpers import (
    new_data_part,
    new_raw_part,
    new_task_from_user_message,
    new_text_message,
)
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    TaskState,
)
from starlette.applications import Starlette

CARD = "/.well-known/agent-card.json"


_ENDS = {
    "fail": (TaskState.TASK_STATE_FAILED, "The timetable is closed."),
    "reject": (TaskState.TASK_STATE_REJECTED, "Not my trade."),
    "ask": (TaskState.TASK_STATE_INPUT_REQUIRED, "Which day?"),
    "status": (TaskState.TASK_STATE_COMPLETED, "Said and done."),
}
_PRICE = {"price": 12.5}
_CONTENTS = {
    "data": [new_data_part(_PRICE)],
    "mixed": [new_data_part(_PRICE), new_raw_part(b"%PDF", media_type="application/pdf")],
}


class TravelAgent(AgentExecutor):
    """Does what the text of a message says. `messages` are those that it got; `gate` lets `hold` go on."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.gate = asyncio.Event()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        self.messages.append(context.message)
        text = context.get_user_input()
        if text == "hello":
            await event_queue.enqueue_event(new_text_message("Hello yourself."))
            return
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work(new_text_message("Looking at the timetable"))
        if text == "hold":
            await self.gate.wait()
        if text in _ENDS:
            state, words = _ENDS[text]
            await updater.update_status(state, new_text_message(words))
            return
        await updater.add_artifact(_CONTENTS.get(text, [Part(text="From Bonn "), Part(text="to Ulm.")]))
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def describe_agent(url: str, version: str) -> AgentCard:
    """Return the card of the agent at a URL, with one interface."""
    return AgentCard(
        name="Travel Agent",
        description="Plans travels by train.",
        version="1.2.3",
        supported_interfaces=[
            AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version=version)
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(
                id="find-trains",
                name="Find trains",
                description="Find trains between two towns.",
                tags=["trains"],
                examples=["From Bonn to Ulm on Monday"],
            ),
            AgentSkill(id="book_seat", name="Book a seat", description="Book a seat.", tags=["booking"]),
        ],
    )


def agent_app(agent: TravelAgent, card: AgentCard) -> Starlette:
    """Return the application that serves an agent."""
    handler = DefaultRequestHandler(agent, InMemoryTaskStore(), card)
    return Starlette(
        routes=[
            *create_agent_card_routes(card),
            *create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True),
        ]
    )
