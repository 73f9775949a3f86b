"""The tools declared by one request, and their order.

A tool that was sent keeps its place, so that a provider's prompt cache still fits.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from beckon_agent.core.model_types import Message
from beckon_agent.tools.bm25 import Index, Indexes
from beckon_agent.tools.query import (
    FIND_TOOLS,
    Finder,
    answer_positions,
    find_mentioned,
    find_used,
    names_found,
    query_of,
)
from beckon_contract.resources.tools import Tool

_PEOPLE: Final = frozenset({"user", "system", "developer"})
_MACHINES: Final = frozenset({"assistant", "tool"})
_REPEATED_TURNS: Final = 8
_REMEMBERED: Final = 2048


class SelectionMemory:
    """A cache of the choices of earlier turns. It saves time, and changes no choice."""

    def __init__(self) -> None:
        self._names: OrderedDict[int, list[str]] = OrderedDict()

    def names_of_turn(self, turn: int) -> list[str] | None:
        """Return the names of a turn."""
        return self._names.get(turn)

    def store_names(self, turn: int, names: list[str]) -> None:
        """Store the names of a turn; beyond the limit, drop the oldest."""
        self._names[turn] = names
        if len(self._names) > _REMEMBERED:
            self._names.popitem(last=False)


@dataclass(frozen=True, slots=True)
class RankedTools:
    """Chooses at most `room` names of the finder's tools. `pinned` are always among them."""

    finder: Finder
    pinned: Sequence[str]
    room: int

    def select_next(
        self, messages: Sequence[Message], sent: Sequence[str], *, steady: bool, needed: Sequence[str] = ()
    ) -> list[str]:
        """Return the names to declare next; `sent` were the last ones."""
        offered = self.finder.offered
        fitting = self.finder.index.find_best(query_of(messages), 2 * self.room, offered.__contains__)
        wanted = [  # whatever it says; the most urgent first
            *needed,
            *find_mentioned(messages, offered, by=_PEOPLE),
            *names_found(messages),
            *self.pinned,
            *[name for name in find_used(messages) if name in offered][: max(1, self.room // 4)],
            *find_mentioned(messages, offered, by=_MACHINES),
        ]
        known = [name for name in wanted if name in offered]
        return place_names(sent, known, fitting, self.room, steady=steady)

    def select_first(
        self, messages: Sequence[Message], memory: SelectionMemory, needed: Sequence[str] = ()
    ) -> list[str]:
        """Return the names to declare if the last ones are unknown.

        The choices of the first turns are computed again, turn by turn.
        """
        names = list(self.pinned)
        for end, turn in self._answered_turns(messages):
            known = memory.names_of_turn(turn)
            if known is None:
                known = self.select_next(messages[:end], names, steady=_is_mid_task(messages[:end]))
                memory.store_names(turn, known)
            names = known
        return self.select_next(messages, names, steady=_is_mid_task(messages), needed=needed)

    def _answered_turns(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Return the first answered turns, each as its end and a number.

        The number is a hash of everything from which the turn's tools were chosen.
        """
        turns = []
        start = 0
        number = hash((frozenset(self.finder.offered), self.room))
        for end in answer_positions(messages)[:_REPEATED_TURNS]:
            number = hash((number, *map(repr, messages[start:end])))
            turns.append((end, number))
            start = end
        return turns


def _is_mid_task(messages: Sequence[Message]) -> bool:
    """True if the model is in the middle of a task. Then the last message is a tool's."""
    return bool(messages) and messages[-1].get("role") == "tool"


def place_names(
    sent: Sequence[str], wanted: Sequence[str], fitting: Sequence[str], room: int, *, steady: bool = False
) -> list[str]:
    """Return at most `room` names, each once.

    `sent` were declared the last time, in that order. `wanted` must be declared as far as there is room.
    `fitting` are the others that fit, the best first. Up to half of the room is for the best of
    `fitting`. A quarter is left free in the beginning for later tools. A new tool takes the place of the one
    that fits least, or comes at the end. With `steady`, a tool that only fits replaces no other.
    """
    better = fitting[: (room + 1) // 2]
    if steady:
        known = {*sent, *wanted}
        free = max(0, room - len(known))
        better = [name for name in better if name in known] + [n for n in better if n not in known][:free]
    needed = _unique_names([*wanted, *better])[:room]
    names = _exchange_names(_unique_names(sent), needed, [*needed, *fitting], room)
    available = set(names)
    spare = max(0, room - room // 4 - len(names))
    return [*names, *[name for name in _unique_names(fitting) if name not in available][:spare]]


def _exchange_names(sent: Sequence[str], needed: Sequence[str], order: Sequence[str], room: int) -> list[str]:
    """Return the sent names with the needed ones placed among them.

    Names without room any more are dropped.
    """
    known, staying = set(sent), set(needed)
    coming = [name for name in needed if name not in known]
    rank = {name: place for place, name in reversed(list(enumerate(order)))}
    places = [(rank.get(name, len(order)), place) for place, name in enumerate(sent) if name not in staying]
    excess = max(0, len(sent) + len(coming) - room)
    going = {place for _, place in sorted(places, reverse=True)[:excess]}
    arriving = iter(coming)
    names = [next(arriving, None) if place in going else name for place, name in enumerate(sent)]
    return [*[name for name in names if name is not None], *arriving]


def _unique_names(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of one choice.

    `tools` is the whole catalogue, never changed afterwards; `allowed` names those that may be used here,
    `None` for all. `limit` is the number of declarations allowed in the request. `sent` are the `names` of
    the previous selection in the same conversation, empty in the beginning or where they are lost. `steady`
    says that the model is in the middle of a task with them: then only a tool called by its name takes the
    place of one. `needed` come before everything else.
    """

    tools: Mapping[str, Tool]
    messages: Sequence[Message]
    limit: int
    sent: Sequence[str] = ()
    allowed: Container[str] | None = None
    needed: Sequence[str] = ()
    steady: bool = False

    def allowed_tools(self) -> Mapping[str, Tool]:
        """Return the tools allowed here."""
        allowed = self.allowed
        if allowed is None:
            return self.tools
        return {name: tool for name, tool in self.tools.items() if name in allowed}


@dataclass(frozen=True, slots=True)
class Selection:
    """The tools to declare, in this order.

    If there are more tools, `FIND_TOOLS` is the first of them, and `finder` answers its calls.
    """

    tools: tuple[Tool, ...]
    finder: Finder | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names for the next choice in this conversation. They are plain data, and can be stored."""
        return tuple(tool.name for tool in self.tools if tool is not FIND_TOOLS)


class Chooser(Protocol):
    """Chooses the tools to declare in a request."""

    async def choose_tools(self, situation: Situation) -> Selection:
        """Return at most `limit` tools, each once. Raises nothing."""
        ...


class FittingTools:
    """Declares all tools if they fit, or else the needed ones.

    Needed are those for the conversation. `pinned` names tools that are always among them, by the names of
    EventTypes, or of tools as models see them. `indexes` may be shared by choosers of the same tools. If the
    tools sent before are not given, it computes the ones it must have sent in the first turns. So the
    declarations of a client that sends the whole conversation begin as they did the last time.
    """

    def __init__(self, pinned: Sequence[str] = (), indexes: Indexes | None = None) -> None:
        self._pins = tuple(pinned)
        self._indexes = indexes or Indexes()
        self._pinned: tuple[Mapping[str, Tool], tuple[str, ...]] = {}, ()
        self._memory: tuple[Index | None, SelectionMemory] = None, SelectionMemory()

    async def choose_tools(self, situation: Situation) -> Selection:
        """Return the selection; the first one for a large catalogue takes some tenths of a second."""
        offered = situation.allowed_tools()
        if len(offered) <= situation.limit or situation.limit < 1:
            return _all_of(situation, offered)
        index = await self._indexes.index_of(situation.tools)
        room = situation.limit - 1
        pinned = [name for name in self._pinned_in(situation.tools) if name in offered]
        choice = RankedTools(Finder(index, offered, max(1, room // 2)), pinned, room)
        sent = [name for name in situation.sent if name in offered]
        if situation.sent:
            names = choice.select_next(
                situation.messages, sent, steady=situation.steady, needed=situation.needed
            )
        else:
            names = choice.select_first(situation.messages, self._memory_of(index), situation.needed)
        return Selection((FIND_TOOLS, *(offered[name] for name in names)), choice.finder)

    def _pinned_in(self, tools: Mapping[str, Tool]) -> Sequence[str]:
        """Return the names of a catalogue's pinned tools, in pinned order."""
        if self._pinned[0] is not tools:
            self._pinned = tools, tuple(_find_named(tools, self._pins)) if self._pins else ()
        return self._pinned[1]

    def _memory_of(self, index: Index) -> SelectionMemory:
        """Return the memory of the choices made with an index."""
        if self._memory[0] is not index:
            self._memory = index, SelectionMemory()
        return self._memory[1]


class AllowedToolsChooser:
    """Chooses among the allowed tools, ranked in the whole catalogue.

    So all users share one index, however many parts of the catalogue they may use.
    """

    def __init__(self, chooser: Chooser, everything: Callable[[], Mapping[str, Tool]]) -> None:
        self._chooser = chooser
        self._everything = everything

    async def choose_tools(self, situation: Situation) -> Selection:
        """Return the selection; its tools are those of the situation."""
        offered = situation.allowed_tools()
        among = replace(situation, tools=self._everything(), allowed=offered)
        selection = await self._chooser.choose_tools(among)
        return replace(selection, tools=tuple(offered.get(tool.name, tool) for tool in selection.tools))


def _find_named(tools: Mapping[str, Tool], pins: Sequence[str]) -> Iterator[str]:
    """Yield the tools with one of these names, as tool or EventType."""
    of_types: dict[str, list[str]] = defaultdict(list)
    for name, tool in tools.items():
        of_types[tool.event_type].append(name)
    for pin in dict.fromkeys(pins):
        yield from [pin] if pin in tools else of_types.get(pin, ())


def _all_of(situation: Situation, offered: Mapping[str, Tool]) -> Selection:
    sent = [name for name in situation.sent if name in offered]
    names = list(dict.fromkeys([*sent, *offered]))[: max(0, situation.limit)]
    return Selection(tuple(offered[name] for name in names))
