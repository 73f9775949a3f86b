"""Prompt snapshots, stored beside the model's answers for replays.

Most of a prompt is the same from turn to turn and from run to run: each system message and each tool is
stored once, under the digest of its text.
"""

import hashlib
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from operator import is_

from beckon_agent.core.model_types import Message
from beckon_agent.core.run_events import StreamItem
from beckon_agent.core.run_types import Model, Options
from beckon_agent.store.base import Materials
from beckon_contract.resources.tools import Tool

_KNOWN_FOR = 3600.0  # seconds; the store deletes nothing that was said to be used within a day
_MOST_KNOWN = 20_000


@dataclass(frozen=True, slots=True)
class PromptSnapshot:
    """The stored parts of one request to a model.

    The rest of the conversation is stored with its runs. `limit` is the number of tools the model would have
    taken.
    """

    model: str
    system: Message
    tools: Sequence[Tool]
    limit: int | None


class PromptRecorder:
    """A model wrapper with a record of the last prompt."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._limit: int | None = None
        self._begun = time.monotonic()
        self.last: PromptSnapshot | None = None

    @property
    def name(self) -> str:
        """The public name of the model."""
        return self._model.name

    @property
    def seconds(self) -> float:
        """The seconds since its last request."""
        return time.monotonic() - self._begun

    async def tool_limit(self) -> int:
        """Return the number of declarations allowed in one request. Raises `ModelError`."""
        self._limit = await self._model.tool_limit()
        return self._limit

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Return the pieces of one answer."""
        self._begun = time.monotonic()
        self.last = PromptSnapshot(self.name, messages[0], tools, self._limit)
        return self._model.stream(messages, tools, options)


class PromptArchive:
    """The stored prompts of models; one instance per process.

    It stores a repeated document again only once an hour, so that the store does not delete it.
    """

    def __init__(self, materials: Materials) -> None:
        self._materials = materials
        self._stored: dict[str, float] = {}
        self._tools: dict[int, tuple[Tool, str]] = {}
        self._last: tuple[Sequence[Tool], str] = ((), digest_of([]))

    async def store_prompt(self, prompt: PromptSnapshot) -> dict[str, str | int | None]:
        """Store the new parts of a prompt; return its record for a turn."""
        system, offered = digest_of(prompt.system), self._digest_of_tools(prompt.tools)
        if not (self._is_stored(system) and self._is_stored(offered)):
            documents: dict[str, object] = {
                self._digest_of(tool): tool_document(tool) for tool in prompt.tools
            }
            names = [self._digest_of(tool) for tool in prompt.tools]
            await self._store_documents({**documents, system: prompt.system, offered: names})
        return {"model": prompt.model, "system": system, "tools": offered, "limit": prompt.limit}

    async def _store_documents(self, documents: Mapping[str, object]) -> None:
        new = {digest: document for digest, document in documents.items() if not self._is_stored(digest)}
        await self._materials.store_documents(new)
        if len(self._stored) > _MOST_KNOWN:
            self._stored.clear()
        self._stored |= dict.fromkeys(new, time.monotonic())

    def _is_stored(self, digest: str) -> bool:
        stored_at = self._stored.get(digest)
        return stored_at is not None and time.monotonic() - stored_at < _KNOWN_FOR

    def _digest_of_tools(self, tools: Sequence[Tool]) -> str:
        """Return the digest of a list of tools. Mostly it is the list of the turn before."""
        before, digest = self._last
        if len(before) != len(tools) or not all(map(is_, before, tools)):
            digest = digest_of([self._digest_of(tool) for tool in tools])
            self._last = (tools, digest)
        return digest

    def _digest_of(self, tool: Tool) -> str:
        """Return the digest of a tool, computed once per tool object."""
        known = self._tools.get(id(tool))
        if known is not None and known[0] is tool:
            return known[1]
        if len(self._tools) > _MOST_KNOWN:
            self._tools.clear()
        digest = digest_of(tool_document(tool))
        self._tools[id(tool)] = (tool, digest)
        return digest


def tool_document(tool: Tool) -> dict[str, object]:
    """Return the tool's properties for the model and for call checks."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "requires_approval": tool.requires_approval,
    }


def digest_of(document: object) -> str:
    """Return the digest of a document's JSON text.

    Documents that are written differently have different digests.
    """
    text = json.dumps(document, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
