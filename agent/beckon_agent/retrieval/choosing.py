"""Which tools one request declares, and in which order: what the loop asks before each turn of the model."""

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from beckon_agent.model.types import Message
from beckon_agent.retrieval.conversation import answered, found, mentioned, query_of, used
from beckon_agent.retrieval.finding import FIND_TOOLS, Finder
from beckon_agent.retrieval.index import Index
from beckon_agent.retrieval.places import placed
from beckon_contract.tools import Tool

_PEOPLE: Final = frozenset({"user", "system", "developer"})
_MACHINES: Final = frozenset({"assistant", "tool"})
_REPEATED_TURNS: Final = 8


@dataclass(frozen=True, slots=True)
class Situation:
    """What a choice is made from.

    `tools` is the whole catalogue, never changed afterwards; `allowed` names those that may be used here,
    `None` for all. `limit` is how many declarations the request may have. `sent` are the `names` of the
    selection before this one in the same conversation, empty in the beginning or where they are lost.
    """

    tools: Mapping[str, Tool]
    messages: Sequence[Message]
    limit: int
    sent: Sequence[str] = ()
    allowed: Container[str] | None = None

    def offered(self) -> Mapping[str, Tool]:
        """Return the tools that may be used."""
        allowed = self.allowed
        if allowed is None:
            return self.tools
        return {name: tool for name, tool in self.tools.items() if name in allowed}


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools to declare, in this order.

    Where there are others, `FIND_TOOLS` is the first of them, and `finder` answers its calls.
    """

    tools: tuple[Tool, ...]
    finder: Finder | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the next choice in this conversation has to know: plain data that can be stored."""
        return tuple(tool.name for tool in self.tools if tool is not FIND_TOOLS)


class Chooser(Protocol):
    """Decides which tools a request declares."""

    async def choose(self, situation: Situation) -> Selection:
        """Return at most as many tools as the limit says, each once. Raises nothing."""
        ...


class EveryTool:
    """Declares all tools; those beyond the limit are left out."""

    async def choose(self, situation: Situation) -> Selection:
        """Return what was sent first, and then the others as the catalogue has them."""
        return _all_of(situation, situation.offered())


class FittingTools:
    """Declares all tools where they are few enough, or else those that the conversation needs.

    `pinned` names tools that are always among them. An index is kept for the catalogue that was seen last.
    Where it is not told what was sent before, it works out what it must have sent in the first turns: so
    the declarations of a client that brings its conversation along begin as they did the last time.
    """

    def __init__(self, pinned: Sequence[str] = ()) -> None:
        self._pinned = tuple(pinned)
        self._indexed: tuple[Mapping[str, Tool], Index] | None = None
        self._indexing = asyncio.Lock()

    async def choose(self, situation: Situation) -> Selection:
        """Return the selection; the first one for a large catalogue takes some tenths of a second."""
        offered = situation.offered()
        if len(offered) <= situation.limit or situation.limit < 1:
            return _all_of(situation, offered)
        room = situation.limit - 1
        finder = Finder(await self._index(situation.tools), offered, max(1, room // 2))
        names = [name for name in situation.sent if name in offered]
        if not situation.sent:
            for end in answered(situation.messages)[:_REPEATED_TURNS]:
                names = self._names(situation.messages[:end], names, finder, room)
        names = self._names(situation.messages, names, finder, room)
        return Selection((FIND_TOOLS, *(offered[name] for name in names)), finder)

    def _names(
        self, messages: Sequence[Message], sent: Sequence[str], finder: Finder, room: int
    ) -> list[str]:
        offered = finder.offered
        fitting = finder.index.best(query_of(messages), 2 * room, offered.__contains__)
        wanted = [  # whatever it says; the most urgent first
            *mentioned(messages, offered, by=_PEOPLE),
            *found(messages),
            *self._pinned,
            *[name for name in used(messages) if name in offered][: max(1, room // 4)],
            *mentioned(messages, offered, by=_MACHINES),
        ]
        return placed(sent, [name for name in wanted if name in offered], fitting, room)

    async def _index(self, tools: Mapping[str, Tool]) -> Index:
        """Return the index of a catalogue, made in a thread so that other requests go on meanwhile."""
        async with self._indexing:
            if self._indexed is None or not _same(self._indexed[0], tools):
                self._indexed = tools, await asyncio.to_thread(Index, tools)
            return self._indexed[1]


def _all_of(situation: Situation, offered: Mapping[str, Tool]) -> Selection:
    sent = [name for name in situation.sent if name in offered]
    names = list(dict.fromkeys([*sent, *offered]))[: max(0, situation.limit)]
    return Selection(tuple(offered[name] for name in names))


def _same(before: Mapping[str, Tool], now: Mapping[str, Tool]) -> bool:
    """Whether two catalogues hold the same tools; an unchanged tool stays the same object."""
    if before is now:
        return True
    return len(before) == len(now) and all(before.get(name) is tool for name, tool in now.items())
