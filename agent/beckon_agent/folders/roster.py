"""The roster of a laptop: the agent of the settings, and those that Agents in the manifests describe."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from beckon_agent.folders.secrets import SecretFiles
from beckon_agent.folders.source import FolderSource
from beckon_agent.folders.tools import FolderTools
from beckon_agent.hosting.agents import Agents, Parts, Place
from beckon_agent.hosting.keys import KeyRing, Wanted
from beckon_agent.hosting.models import ModelPool
from beckon_agent.hosting.own import Own
from beckon_agent.roster import Hosted, NotServed
from beckon_contract.agent_resources import is_agent
from beckon_contract.resources import Resource

logger = logging.getLogger(__name__)

_KEYS_EVERY = 30.0  # seconds until a changed key is seen that no server has refused


class FolderRoster:
    """The agents of folders of manifests, followed as the files change."""

    complete = True

    def __init__(self, source: FolderSource, own: Own, secrets: SecretFiles) -> None:
        """Raise `ValueError` for a model of the service's own that cannot be used."""
        self._source = source
        self._known: dict[Place, Resource] = {}
        self._changes = 0
        self._keys = KeyRing(secrets.read, self._wanted_keys, self._key_changed, _KEYS_EVERY)
        self._models = ModelPool(self._keys.read_soon)
        parts = Parts(own, FolderTools(source), self._models, self._keys, _where)
        self._agents = Agents(parts, self._tell)
        self._read_agents()
        source.follow(self._read_agents)

    @property
    def default(self) -> str:
        """The name of the service's own agent."""
        return self._agents.default

    @property
    def tools(self) -> int:
        """How many tools there are."""
        return len(self._source.current.tools)

    def find(self, name: str) -> Hosted | NotServed | None:
        """Return the agent of this name."""
        return self._agents.find(name)

    def hosted(self) -> Sequence[Hosted]:
        """Return the agents that take requests, the service's own first."""
        return self._agents.hosted()

    async def watch(self) -> None:
        """Follow the files until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._source.watch())
            tasks.create_task(self._keys.run())

    async def close(self) -> None:
        """Close the connections to all models."""
        await self._models.close()

    def _read_agents(self) -> None:
        written = {(one.namespace, one.name): one for one in self._source.resources if is_agent(one)}
        for place in self._known.keys() - written.keys():
            self._agents.drop(*place)
        for place, resource in written.items():
            if self._known.get(place) != resource:
                self._changes += 1  # files have no generation that tells one change from the next
                self._agents.take(replace(resource, generation=self._changes))
        self._known = written

    def _tell(self, place: Place) -> None:
        """Say what became of an Agent; there is no status to write it into."""
        entry = self._agents.entry(place)
        if entry is None:
            logger.info("the Agent %s/%s has gone", *place)
        elif entry.trouble is not None and entry.hosted is None:
            trouble = entry.trouble
            logger.warning("the Agent %s/%s is not served: %s: %s", *place, trouble.reason, trouble.message)
        else:
            logger.info("the Agent %s/%s takes requests", *place)

    def _wanted_keys(self) -> set[Wanted]:
        return set(self._agents.wanted_keys())

    def _key_changed(self, wanted: Wanted) -> None:
        self._agents.key_changed(wanted)


def _where(place: Place) -> str:
    return f"`beckon check` or the log says what to do with the Agent {place[0]}/{place[1]}"
