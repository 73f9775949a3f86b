"""The client of the A2A SDK, connected over real HTTP by the card of an agent."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.helpers.proto_helpers import get_artifact_text, new_data_part, new_text_part
from a2a.types.a2a_pb2 import (
    AgentCard,
    GetTaskRequest,
    Message,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)

from tests.patience import PATIENCE


@dataclass(frozen=True, slots=True)
class SdkClient:
    """A client of one agent; `whole` waits for the end of a task, `streaming` yields its updates."""

    card: AgentCard
    whole: Client
    streaming: Client

    async def send(self, text: str, **members: Any) -> Task:
        """Return the task of a message at its end."""
        return await self.send_message(text_message(text, **members))

    async def send_message(
        self, message: Message, configuration: SendMessageConfiguration | None = None
    ) -> Task:
        """Return the task of a message, as the server answers."""
        request = SendMessageRequest(message=message, configuration=configuration)
        (answer,) = [event async for event in self.whole.send_message(request)]
        return answer.task

    async def stream(self, message: Message) -> list[StreamResponse]:
        """Return all events of the stream of a message."""
        return [event async for event in self.streaming.send_message(SendMessageRequest(message=message))]

    async def get(self, task_id: str) -> Task:
        """Return a task as it is now."""
        return await self.whole.get_task(GetTaskRequest(id=task_id))


def text_message(text: str, **members: Any) -> Message:
    """Return a message with a text, and an id of its own."""
    return Message(
        **{
            "message_id": secrets.token_hex(8),
            "role": Role.ROLE_USER,
            "parts": [new_text_part(text)],
            **members,
        }
    )


def data_message(data: Any, **members: Any) -> Message:
    """Return a message with a data part."""
    return text_message("", parts=[new_data_part(data)], **members)


def answer_of(task: Task) -> str:
    """Return the text of a task's artifacts."""
    return "\n".join(get_artifact_text(artifact) for artifact in task.artifacts)


def states_of(events: list[StreamResponse]) -> list[str]:
    """Return the states that a stream reports, each run of the same one as one."""
    found: list[str] = []
    for event in events:
        if not event.HasField("artifact_update"):
            status = event.task.status if event.HasField("task") else event.status_update.status
            name = TaskState.Name(status.state)
            if found[-1:] != [name]:
                found.append(name)
    return found


def streamed_answer(events: list[StreamResponse]) -> str:
    """Return the answer that the artifact updates of a stream add up to."""
    text = ""
    for event in events:
        if event.HasField("artifact_update"):
            update = event.artifact_update
            text = (text if update.append else "") + get_artifact_text(update.artifact)
    return text


@asynccontextmanager
async def connected_client(
    address: str, headers: Mapping[str, str] | None = None, *, binding: tuple[str, str] | None = None
) -> AsyncIterator[SdkClient]:
    """Connect to the agent with its card below an address, over one of its interfaces if named."""
    async with httpx.AsyncClient(headers=dict(headers or {}), timeout=PATIENCE) as http:
        card = await A2ACardResolver(http, address).get_agent_card()
        supported = [
            one
            for one in card.supported_interfaces
            if binding in (None, (one.protocol_binding, one.protocol_version))
        ]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(supported)
        bindings = ["JSONRPC", "HTTP+JSON"]
        made = [
            ClientFactory(
                ClientConfig(streaming=streaming, httpx_client=http, supported_protocol_bindings=bindings)
            ).create(card)
            for streaming in (False, True)
        ]
        yield SdkClient(card, made[0], made[1])
