"""The agents and tools as one principal may use them.

Faces find an agent in a roster and its tools in its catalogue. Both are given to them filtered here,
by the principal that their task works for, so that no face can forget to ask.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from beckon_agent.access.rules import Mask, allowed_tools, mask_of, may_use
from beckon_agent.catalogue.explained import Explanation
from beckon_agent.catalogue.source import CatalogueSource
from beckon_agent.principals import principal
from beckon_agent.retrieval.choosing import Among
from beckon_agent.roster import Hosted, NotServed, Roster
from beckon_agent.runs import Agent
from beckon_contract.catalogue import Catalogue
from beckon_contract.tools import Refusal, Skipped, Tool

_KEPT_VIEWS = 256


class PermittedRoster:
    """A roster in which the current principal finds what it may use, and nothing else.

    `find` and `hosted` raise `NoPrincipal` where nobody has said who asks. What is found stays as
    permitted for the run that it was found for.
    """

    def __init__(self, roster: Roster, *, deny_by_default: bool = False) -> None:
        self._roster = roster
        self._deny_by_default = deny_by_default
        self._views = _Views()

    @property
    def complete(self) -> bool:
        """Whether all agents and tools were read once."""
        return self._roster.complete

    @property
    def default(self) -> str:
        """The name of the agent that is meant where a request names none."""
        return self._roster.default

    @property
    def tools(self) -> int:
        """How many tools there are in all."""
        return self._roster.tools

    def find(self, name: str) -> Hosted | NotServed | None:
        """Return the agent of this name; one that may not be used is as if it were not there."""
        found = self._roster.find(name)
        if isinstance(found, Hosted):
            return self._permitted(found)
        # The rules of an agent that is not served may be unreadable: nobody is told of it who was not let in.
        return None if principal().kind == "nobody" else found

    def hosted(self) -> Sequence[Hosted]:
        """Return the agents that take requests of the principal, the default one first."""
        permitted = map(self._permitted, self._roster.hosted())
        return [hosted for hosted in permitted if hosted is not None]

    async def watch(self) -> None:
        """Keep all of it up to date until cancelled."""
        await self._roster.watch()

    def _permitted(self, hosted: Hosted) -> Hosted | None:
        who, terms = principal(), hosted.agent.terms
        if not may_use(terms.access, who, deny_by_default=self._deny_by_default):
            return None
        mask = mask_of(terms.access, who)
        if mask is None and not terms.policies:
            return hosted
        return replace(
            hosted,
            catalogue=_PermittedTools(hosted, mask, self._views),
            chooser=Among(hosted.chooser, lambda: hosted.catalogue.current.tools),
        )


@dataclass(frozen=True, slots=True)
class _View:
    """A catalogue as those of one mask see it, and what it was made of."""

    whole: Catalogue
    agent: Agent
    seen: Catalogue


class _Views:
    """The catalogues that were made last: the same one for the same tools, rules and mask.

    Whoever keeps something beside a catalogue, an index of it for instance, finds it again.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Mask | None], _View] = OrderedDict()

    def get(self, name: str, mask: Mask | None, made_of: tuple[Catalogue, Agent]) -> Catalogue:
        whole, agent = made_of
        view = self._kept.get((name, mask))
        if view is None or view.whole is not whole or view.agent is not agent:
            view = self._kept[name, mask] = _View(whole, agent, _seen(whole, agent, mask))
        self._kept.move_to_end((name, mask))
        if len(self._kept) > _KEPT_VIEWS:
            self._kept.popitem(last=False)
        return view.seen


class _PermittedTools:
    """The tools of an agent that those of one mask may use."""

    def __init__(self, hosted: Hosted, mask: Mask | None, views: _Views) -> None:
        self._source: CatalogueSource = hosted.catalogue
        self._look: Callable[[Catalogue], Catalogue] = lambda whole: views.get(
            hosted.name, mask, (whole, hosted.agent)
        )

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now."""
        return self._look(self._source.current)

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return what is known of an EventType of these; of any other nothing is."""
        seen = self.current
        known: Sequence[Tool | Refusal | Skipped] = (*seen.tools.values(), *seen.refusals, *seen.skipped)
        if not any((one.namespace, one.event_type) == (namespace, event_type) for one in known):
            return None
        return self._source.explain(namespace, event_type)


def _seen(whole: Catalogue, agent: Agent, mask: Mask | None) -> Catalogue:
    """Return a catalogue without the tools of others; who has rules is not told what was refused either."""
    tools = MappingProxyType(allowed_tools(agent, mask, whole.tools))
    if mask is None:
        return replace(whole, tools=tools)
    return Catalogue(tools, table=whole.table)
