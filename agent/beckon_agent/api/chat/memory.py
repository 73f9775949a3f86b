"""The work of a run before it handed a call to its client.

It is stored until the client comes back with the call's result.
"""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from beckon_agent.core import json_values
from beckon_agent.core.model_types import Message
from beckon_agent.core.records import Ended, NewRun
from beckon_agent.store.base import Store

FACE = "chat"
"""What it is stored under."""

_HOLD_SECONDS = 10.0
_HANDED = re.compile(r"(chat_[0-9a-f]{32})\.(.+)", re.DOTALL)
_MAX_RUNS = 100  # of one request


@dataclass(frozen=True, slots=True)
class HandedCalls:
    """Stores the steps of an owner's runs before a client call.

    The id of a handed call contains the id of its run.
    """

    store: Store
    owner: str
    agent: str

    async def store_messages(self, run: str, added: Sequence[Message]) -> None:
        """Store the messages added by a run to its conversation.

        Nothing is stored if the client sees all of them.
        """
        if len(added) < 2:
            return
        new = NewRun(id=run, owner=self.owner, agent=self.agent, face=FACE, input=added)
        await self.store.runs.create(new, holder=run, seconds=_HOLD_SECONDS)
        await self.store.runs.end_run(run, run, Ended("completed", "client_call", added=()))

    async def restore_messages(self, messages: Sequence[Message]) -> list[Message]:
        """Return a conversation with the messages hidden from its client.

        The ids of calls are the model's own again.
        """
        found: list[Message] = []
        known = 0
        for message in messages:
            run = _run_of(message) if message.get("role") == "assistant" else None
            known += run is not None
            stored = await self._stored_messages(run) if run is not None and known <= _MAX_RUNS else []
            found += stored or [_with_own_ids(message)]
        return found

    async def _stored_messages(self, run_id: str) -> list[Message]:
        run = await self.store.runs.get(run_id)
        if run is None or run.owner != self.owner or run.face != FACE:
            return []
        return await self.store.runs.load_messages(run_id)


def new_run_id() -> str:
    """Return a new run id."""
    return f"chat_{secrets.token_hex(16)}"


def handed_id(run: str, call_id: str) -> str:
    """Return the id of a call handed to a client."""
    return f"{run}.{call_id}"


def _run_of(message: Message) -> str | None:
    for call in json_values.as_sequence(message.get("tool_calls")):
        found = _HANDED.fullmatch(json_values.as_text(json_values.as_mapping(call).get("id")))
        if found:
            return found[1]
    return None


def _with_own_ids(message: Message) -> Message:
    match message.get("role"):
        case "assistant" if calls := json_values.as_sequence(message.get("tool_calls")):
            own = [
                {**json_values.as_mapping(call), "id": _own_id(json_values.as_mapping(call).get("id"))}
                for call in calls
            ]
            return {**message, "tool_calls": own}
        case "tool":
            return {**message, "tool_call_id": _own_id(message.get("tool_call_id"))}
    return message


def _own_id(call_id: object) -> str:
    found = _HANDED.fullmatch(json_values.as_text(call_id))
    return found[2] if found else json_values.as_text(call_id)
