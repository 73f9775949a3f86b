"""Keeping the status of Agents true, with as few writes as it takes.

Every replica of the service does this, and none asks the others: all come to the same status,
and one that is already there is not written again. Where replicas see it differently, because
only one of them reaches a model, each writes once in a while, and never because another did.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from beckon_agent.cluster.status import differs
from beckon_agent.hosting.agents import Agents, Entry, Place
from beckon_kube.server import Document, Refused, Unreachable

logger = logging.getLogger(__name__)

_GATHER = (0.1, 0.6)  # seconds; many Tools often change at once, and replicas should not write at once


class WriteStatus(Protocol):
    """Writes the status of an Agent, and returns the Agent as it is then."""

    async def __call__(self, place: Place, status: Mapping[str, Any]) -> Document:
        """Raise `Refused` or `Unreachable`."""
        ...


class StatusKeeper:
    """Writes the status of each Agent that `look_at` names, and of all of them now and then.

    `wanted` returns the status that an Agent should have; `period` is in seconds.
    """

    def __init__(
        self, write: WriteStatus, agents: Agents, wanted: Callable[[Entry], dict[str, Any]], period: float
    ) -> None:
        self._write = write
        self._agents = agents
        self._wanted = wanted
        self._period = period
        self._due: set[Place] = set()
        self._wake = asyncio.Event()
        self._refused: set[str] = set()

    def look_at(self, places: Iterable[Place]) -> None:
        """Note that the status of these Agents may have to change."""
        self._due.update(places)
        if self._due:
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            pause = self._period * random.uniform(0.8, 1.2)  # noqa: S311  # jitter is no secret
            try:
                async with asyncio.timeout(pause):
                    await self._wake.wait()
            except TimeoutError:
                self._due.update(self._agents.places())
            await asyncio.sleep(random.uniform(*_GATHER))  # noqa: S311  # jitter is no secret
            self._wake.clear()
            due, self._due = self._due, set()
            for place in sorted(due):
                await self._keep(place)

    async def _keep(self, place: Place) -> None:
        entry = self._agents.entry(place)
        if entry is None:
            return
        try:
            wanted = self._wanted(entry)
            if differs(wanted, entry.status) and not _is_newer(entry.status, wanted):
                written = await self._write(place, wanted)
                entry.status = written.get("status") or {}
        except Unreachable:
            logger.debug("the status of Agent %s/%s waits for the API server", *place)
        except Refused as error:
            self._tell(place, error)
        except Exception:  # one Agent must not keep the others from their status
            logger.exception("the status of Agent %s/%s cannot be written", *place)

    def _tell(self, place: Place, error: Refused) -> None:
        """Log once why statuses are refused; an Agent that is gone meanwhile is no news."""
        if error.status == 404 or str(error) in self._refused:
            return
        self._refused.add(str(error))
        logger.warning("the API server refuses the status of Agent %s/%s: %s", *place, error)


def _is_newer(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a status tells of a later change of the Agent than we have seen."""
    generation = found.get("observedGeneration")
    return isinstance(generation, int) and generation > wanted["observedGeneration"]
