"""The tools of one turn: the declared ones, and the callable ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from beckon_agent.core import json_values
from beckon_agent.core.model_types import BROKE_OFF, Message, Turn
from beckon_agent.core.run_types import Agent, Options
from beckon_agent.telemetry.run_spans import record_offered_tools
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.validation import PreparedCall, client_tools, prepare_calls
from beckon_agent.tools.catalogue import CatalogueSource
from beckon_agent.tools.query import FIND_TOOLS, Finder
from beckon_agent.tools.select import Chooser, Situation
from beckon_contract.resources.tools import Tool

_CUT_OFF = frozenset({"length", BROKE_OFF})


class HasToolLimit(Protocol):
    """A model with a limit of declarations."""

    async def tool_limit(self) -> int:
        """Return the limit of declarations in one request; raises `ModelError`."""
        ...


@dataclass(frozen=True, slots=True)
class SelectableTools:
    """The tools of an agent, and the chooser among them."""

    catalogue: CatalogueSource
    chooser: Chooser


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools offered for one answer of the model.

    `declared` are the tools sent to the model. It may call all of `known`, for it may remember a tool sent
    earlier; those in `theirs` are the client's. `finder` answers calls of `find_tools`.
    """

    declared: tuple[Tool, ...] = ()
    known: Mapping[str, Tool] = field(default_factory=dict)
    theirs: frozenset[str] = frozenset()
    finder: Finder | None = None

    def read_calls(self, turn: Turn) -> list[PreparedCall]:
        """Return the calls of an answer after inspection."""
        calls = prepare_calls(turn.calls, self.known, cut_off=turn.finish_reason in _CUT_OFF)
        return [call.handed_back() if call.tool_call.name in self.theirs else call for call in calls]

    def answer_searches(self, calls: Sequence[PreparedCall]) -> list[PreparedCall]:
        """Return the calls, with answers for those of `find_tools`. A call of `find_tools` sends no event."""
        return [self._answer_search(call) if call.action is FIND_TOOLS else call for call in calls]

    def _answer_search(self, call: PreparedCall) -> PreparedCall:
        return (
            call
            if self.finder is None
            else replace(call, action=CallOutcome(self.finder.answer_call(call.arguments)))
        )


class ToolOffers:
    """The offers of one run, one after the other.

    Tools sent before stay, as far as there is room. `sent` are the names of the last offer before this
    process took the run over. After each offer it holds the names for the process that continues the run.
    """

    def __init__(
        self, tools: SelectableTools, agent: Agent, options: Options, sent: Sequence[str] = ()
    ) -> None:
        self._tools = tools
        self._agent = agent
        self._options = options
        self.sent = tuple(sent)

    async def make_offer(self, messages: Sequence[Message], model: HasToolLimit) -> OfferedTools:
        """Return the offer for the model's next answer; raises `ModelError`."""
        theirs = client_tools(self._options, self._agent)
        cluster = self._tools.catalogue.current.tools if self._options.use_tools else {}
        ours = {name: tool for name, tool in cluster.items() if name not in theirs} if theirs else cluster
        if not ours and not theirs:
            return OfferedTools()
        room = _room_for_tools(await model.tool_limit(), self._agent.limits.tools, len(theirs))
        selection = await self._tools.chooser.choose_tools(self._to_situation(ours, messages, room))
        self.sent = selection.names
        record_offered_tools(len(ours) + len(theirs))
        searching = {FIND_TOOLS.name: FIND_TOOLS} if selection.finder else {}
        return OfferedTools(
            (*selection.tools, *theirs.values()),
            {**ours, **theirs, **searching},
            frozenset(theirs),
            selection.finder,
        )

    def _to_situation(self, ours: Mapping[str, Tool], messages: Sequence[Message], room: int) -> Situation:
        allowed = self._options.allowed_tools
        return Situation(
            tools=ours,
            messages=messages,
            limit=room,
            sent=self.sent,
            # Where there is room for all of them, the list stays as it is, and providers' caches fit.
            allowed=None if allowed is None or len(ours) <= room else frozenset(allowed),
            needed=_forced_tools(self._options),
            steady=bool(self.sent),
        )


def _room_for_tools(most: int, wanted: int, theirs: int) -> int:
    """Return the number of declarations left for our own tools. The client's tools come first, and count."""
    return max(0, min(most - theirs, max(1, wanted - theirs)))


def _forced_tools(options: Options) -> tuple[str, ...]:
    """Return the name of the tool forced on the first answer, if any.

    Forcing a tool that is not declared is an error.
    """
    function = json_values.as_mapping(json_values.as_mapping(options.first_choice).get("function"))
    name = json_values.as_text(function.get("name"))
    return (name,) if name else ()
