"""Agents and tools of folders of manifests, reloaded when a file changes."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from beckon_agent.agents.configured import Agents, ConfiguredAgent, Parts, Place
from beckon_agent.agents.keys import KeyRing, SecretEntry, SecretFiles
from beckon_agent.agents.model_pool import ModelPool
from beckon_agent.agents.registry import AgentHandle, UnavailableAgent
from beckon_agent.tools.bm25 import Indexes
from beckon_agent.tools.catalogue import CatalogueSource, Judge, with_addresses
from beckon_agent.tools.event_types import find_events
from beckon_agent.tools.explain import Explanation
from beckon_agent.tools.select import AllowedToolsChooser, Chooser, FittingTools
from beckon_contract.catalogue.builder import Catalogue, CatalogueBuilder
from beckon_contract.knative.addresses import with_readiness
from beckon_contract.knative.eventtypes import EventType
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.resources.agent_resource import is_agent
from beckon_contract.resources.tools import ToolSelector
from beckon_runtime.logs import point_to_log
from beckon_sources.folders import Follower, ManifestFolders

logger = logging.getLogger(__name__)


class FolderSource:
    """Reads EventTypes and Triggers from folders.

    A later folder wins over an earlier one. `caller` is the CloudEvents source of the calls, on which
    Triggers may filter.
    """

    def __init__(self, folders: Sequence[Path], caller: str) -> None:
        self._paths = folders
        self._folders = ManifestFolders(tuple(folders))
        self._builder = CatalogueBuilder(caller)
        self._caller = caller
        self._resources: Sequence[Resource] = ()
        self._judge: Judge | None = None
        self._followed: list[Callable[[], None]] = []
        self._event_types: Sequence[EventType] = ()
        self._current = self._read_folders() or Catalogue({})

    @property
    def current(self) -> Catalogue:
        """The catalogue as of the last change."""
        return self._current

    @property
    def resources(self) -> Sequence[Resource]:
        """All objects in the manifests as of the last change. A later object replaces an earlier one."""
        return self._resources

    @property
    def event_types(self) -> Sequence[EventType]:
        """The EventTypes that are no tools, as of the last change."""
        return self._event_types

    def follow(self, changed: Callable[[], None]) -> None:
        """Call `changed` after each change."""
        self._followed.append(changed)

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType. It is computed from the manifests as of the last change."""
        if self._judge is None:
            self._judge = Judge(self._current, self._resources, self._caller)
        return self._judge.explain(namespace, event_type)

    async def watch(self) -> None:
        """Rebuild the catalogue within a second of every change, until cancelled."""
        await Follower(self._paths, self._read_folders, self._take_catalogue).run()

    def _take_catalogue(self, catalogue: Catalogue) -> None:
        self._current, self._judge = catalogue, None
        refused = len(catalogue.refusals)
        logger.info("reloaded the catalogue: %d tools, %d refused", len(catalogue.tools), refused)
        for changed in self._followed:
            changed()

    def _read_folders(self) -> Catalogue | None:
        """Return the catalogue if the folders have changed; blocks on the file system."""
        if not self._folders.refresh():
            return None
        resources = with_readiness(self._folders.resources)
        self._resources = resources
        self._event_types = find_events(resources)
        return with_addresses(self._builder.build([*resources, *self._folders.unreadable]), resources)


class ChosenTools:
    """The catalogue of one agent: the selected tools of its namespace."""

    def __init__(self, source: CatalogueSource, namespace: str, selector: ToolSelector) -> None:
        self._source = source
        self._namespace = namespace
        self._selector = selector
        self._whole = source.current
        self._current = self._choose_tools(self._whole)

    @property
    def current(self) -> Catalogue:
        """The catalogue as it is now, in the order of names."""
        catalogue = self._source.current
        if catalogue is not self._whole:
            self._whole, self._current = catalogue, self._choose_tools(catalogue)
        return self._current

    def explain(self, namespace: str, event_type: str) -> Explanation | None:
        """Return the explanation of an EventType of the agent's namespace. `None` for any other namespace."""
        return self._source.explain(namespace, event_type) if namespace == self._namespace else None

    def _choose_tools(self, whole: Catalogue) -> Catalogue:
        here, selector = self._namespace, self._selector
        tools = {
            name: tool
            for name, tool in whole.tools.items()
            if tool.namespace == here and selector.selects(tool)
        }
        # A refused manifest may have no labels that could be read: a selector by labels does not choose it.
        refusals = tuple(
            one for one in whole.refusals if one.namespace == here and selector.matches((one.event_type,), {})
        )
        skipped = tuple(one for one in whole.skipped if one.namespace == here)
        return Catalogue(MappingProxyType(tools), refusals, skipped, whole.table)


class FolderTools:
    """The tools of folders, to be selected by agents.

    The service's own agent has the tools of all namespaces.
    """

    def __init__(self, source: FolderSource) -> None:
        self._source = source
        self._indexes = Indexes()

    def own(self, namespace: str) -> CatalogueSource:  # a protocol; all namespaces are meant
        """Return the tools of the service's own agent."""
        return self._source

    def chosen(self, namespace: str, selector: ToolSelector) -> CatalogueSource:
        """Return the tools of an agent of a namespace."""
        return ChosenTools(self._source, namespace, selector)

    def chooser(self, namespace: str, pinned: Sequence[str]) -> Chooser:  # as above
        """Return the chooser for an agent; all share one index."""
        return AllowedToolsChooser(FittingTools(pinned, self._indexes), lambda: self._source.current.tools)

    def event_types(self, namespace: str) -> Sequence[EventType]:
        """Return the EventTypes of a namespace that are no tools."""
        return [one for one in self._source.event_types if one.namespace == namespace]


_KEYS_EVERY = 30.0  # seconds until a changed key is seen that no server has refused


class FolderAgents:
    """The agents of folders of manifests, followed as the files change."""

    complete = True

    def __init__(self, source: FolderSource, own: ConfiguredAgent, secrets: SecretFiles) -> None:
        """Raise `ValueError` for an unusable model in the service's settings."""
        self._source = source
        self._known: dict[Place, Resource] = {}
        self._changes = 0
        self._keys = KeyRing(secrets.read, self._wanted_keys, self._key_changed, _KEYS_EVERY)
        self._models = ModelPool(self._keys.read_soon)
        parts = Parts(own, FolderTools(source), self._models, self._keys, _place_name)
        self._agents = Agents(parts, self._log_state)
        self._read_agents()
        source.follow(self._read_agents)

    @property
    def default(self) -> str:
        """The name of the service's own agent."""
        return self._agents.default

    @property
    def tools(self) -> int:
        """The number of tools."""
        return len(self._source.current.tools)

    def find(self, name: str) -> AgentHandle | UnavailableAgent | None:
        """Return the agent of this name."""
        return self._agents.find(name)

    def hosted(self) -> Sequence[AgentHandle]:
        """Return the agents taking requests, the service's own first."""
        return self._agents.hosted()

    async def watch(self) -> None:
        """Follow the files until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._source.watch())
            tasks.create_task(self._keys.read_periodically())

    async def close(self) -> None:
        """Close the connections to all models."""
        await self._models.close()

    def _read_agents(self) -> None:
        written = {(one.namespace, one.name): one for one in self._source.resources if is_agent(one)}
        for place in self._known.keys() - written.keys():
            self._agents.drop(*place)
        for place, resource in written.items():
            if self._known.get(place) != resource:
                self._changes += 1  # files have no generation that distinguishes their changes
                self._agents.take_resource(replace(resource, generation=self._changes))
        self._known = written

    def _log_state(self, place: Place) -> None:
        """Log the state of an Agent, since there is no status to write."""
        entry = self._agents.find_entry(place)
        if entry is None:
            logger.info("the Agent %s/%s has gone", *place)
        elif entry.trouble is not None and entry.hosted is None:
            trouble = entry.trouble
            logger.warning("the Agent %s/%s is not served: %s: %s", *place, trouble.reason, trouble.message)
        else:
            logger.info("the Agent %s/%s takes requests", *place)

    def _wanted_keys(self) -> set[SecretEntry]:
        return set(self._agents.wanted_keys())

    def _key_changed(self, wanted: SecretEntry) -> None:
        self._agents.key_changed(wanted)


def _place_name(place: Place) -> str:
    name = f"the Agent {place[0]}/{place[1]}"
    return f"`beckon check FOLDER` says what to do with {name}; {point_to_log('agent', name)}"
