"""Which tools one request declares, and in which order: what the loop asks before each turn of the model."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from beckon_agent.model.types import Message
from beckon_agent.retrieval.choice import Choice, Memory
from beckon_agent.retrieval.finding import FIND_TOOLS, Finder
from beckon_agent.retrieval.index import Index
from beckon_agent.retrieval.indexes import Indexes
from beckon_contract.tools import Tool


@dataclass(frozen=True, slots=True)
class Situation:
    """What a choice is made from.

    `tools` is the whole catalogue, never changed afterwards; `allowed` names those that may be used here,
    `None` for all. `limit` is how many declarations the request may have. `sent` are the `names` of the
    selection before this one in the same conversation, empty in the beginning or where they are lost.
    `steady` says that the model is in the middle of a task with them: then nothing takes their places but
    what is called by its name. `needed` come before everything else.
    """

    tools: Mapping[str, Tool]
    messages: Sequence[Message]
    limit: int
    sent: Sequence[str] = ()
    allowed: Container[str] | None = None
    needed: Sequence[str] = ()
    steady: bool = False

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

    `pinned` names tools that are always among them, by the names of EventTypes, or of tools as models see
    them. `indexes` may be shared by those who choose among the same tools. Where it is not told what was
    sent before, it works out what it must have sent in the first turns: so the declarations of a client that
    brings its conversation along begin as they did the last time.
    """

    def __init__(self, pinned: Sequence[str] = (), indexes: Indexes | None = None) -> None:
        self._pins = tuple(pinned)
        self._indexes = indexes or Indexes()
        self._pinned: tuple[Mapping[str, Tool], tuple[str, ...]] = {}, ()
        self._memory: tuple[Index | None, Memory] = None, Memory()

    async def choose(self, situation: Situation) -> Selection:
        """Return the selection; the first one for a large catalogue takes some tenths of a second."""
        offered = situation.offered()
        if len(offered) <= situation.limit or situation.limit < 1:
            return _all_of(situation, offered)
        index = await self._indexes.of(situation.tools)
        room = situation.limit - 1
        pinned = [name for name in self._pinned_in(situation.tools) if name in offered]
        choice = Choice(Finder(index, offered, max(1, room // 2)), pinned, room)
        sent = [name for name in situation.sent if name in offered]
        if situation.sent:
            names = choice.next(situation.messages, sent, steady=situation.steady, needed=situation.needed)
        else:
            names = choice.first(situation.messages, self._memory_of(index), situation.needed)
        return Selection((FIND_TOOLS, *(offered[name] for name in names)), choice.finder)

    def _pinned_in(self, tools: Mapping[str, Tool]) -> Sequence[str]:
        """Return the names of the pinned tools in a catalogue, in the order in which they are pinned."""
        if self._pinned[0] is not tools:
            self._pinned = tools, tuple(_named(tools, self._pins)) if self._pins else ()
        return self._pinned[1]

    def _memory_of(self, index: Index) -> Memory:
        """Return what is remembered of choices with an index."""
        if self._memory[0] is not index:
            self._memory = index, Memory()
        return self._memory[1]


class Among:
    """Chooses for those who may use only some of a catalogue, with what is known of all of it.

    So there is one index for everybody, however many there are who may use different parts.
    """

    def __init__(self, chooser: Chooser, everything: Callable[[], Mapping[str, Tool]]) -> None:
        self._chooser = chooser
        self._everything = everything

    async def choose(self, situation: Situation) -> Selection:
        """Return the selection; its tools are those of the situation."""
        offered = situation.offered()
        among = replace(situation, tools=self._everything(), allowed=offered)
        selection = await self._chooser.choose(among)
        return replace(selection, tools=tuple(offered.get(tool.name, tool) for tool in selection.tools))


def _named(tools: Mapping[str, Tool], pins: Sequence[str]) -> Iterator[str]:
    """Yield the tools that have one of these names, or whose EventType has it."""
    of_types: dict[str, list[str]] = defaultdict(list)
    for name, tool in tools.items():
        of_types[tool.event_type].append(name)
    for pin in dict.fromkeys(pins):
        yield from [pin] if pin in tools else of_types.get(pin, ())


def _all_of(situation: Situation, offered: Mapping[str, Tool]) -> Selection:
    sent = [name for name in situation.sent if name in offered]
    names = list(dict.fromkeys([*sent, *offered]))[: max(0, situation.limit)]
    return Selection(tuple(offered[name] for name in names))
