"""Who waits for another list of tools, and telling them when it is there.

A catalogue is a value that its source replaces, so it is looked at from time to time; only
while somebody waits. Every replica follows the same cluster, so any of them may be asked.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import Iterator, Mapping

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.service import Service
from beckon_contract.tools import Tool

TOO_MANY = "as many clients as may wait for changes of the tools already; list them from time to time"

_LOOK_SECONDS = 0.5


class TooManyListeners(Exception):
    """No more can wait."""


class Listener:
    """One who waits, until `ended`; changes that come while it is busy are told as one."""

    def __init__(self, service: Service, agent: str) -> None:
        self.ended = False
        self._news = asyncio.Event()
        self._service = service
        self._agent = agent
        self._asker = contextvars.copy_context()  # the roster shows each principal what it may use
        self.seen = self.look()

    async def changed(self) -> bool:
        """Wait for a change; return whether there was one, `False` at the end of the service."""
        await self._news.wait()
        self._news.clear()
        return not self.ended

    def look(self) -> Mapping[str, Tool]:
        """Return the tools as they are now for the one who listens."""
        found = self._asker.run(self._service.registry.find, self._agent)
        return found.catalogue.current.tools if isinstance(found, AgentHandle) else {}

    def notify(self) -> None:
        """Say that something has changed."""
        self._news.set()

    def end(self) -> None:
        """Say that nothing more will be told."""
        self.ended = True
        self._news.set()


class Changes:
    """All listeners, at most `most`."""

    def __init__(self, service: Service, most: int) -> None:
        self._service = service
        self._most = most
        self._listeners: set[Listener] = set()
        self._looking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether no more can listen."""
        return len(self) >= self._most

    @contextlib.contextmanager
    def listening(self, agent: str) -> Iterator[Listener]:
        """Wait for the changes of an agent's tools in this block; raises `TooManyListeners`."""
        if self.full:
            raise TooManyListeners(TOO_MANY)
        listener = Listener(self._service, agent)
        self._listeners.add(listener)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def stop(self) -> None:
        """End all streams, and look no more."""
        self._end()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        while self._listeners:
            if self._service.draining:
                self._end()
            compared = _Compared()
            for listener in self._listeners:
                now = listener.look()
                if compared.differ(listener.seen, now):
                    listener.notify()
                listener.seen = now
            await asyncio.sleep(_LOOK_SECONDS)
        self._looking = None

    def _end(self) -> None:
        for listener in self._listeners:
            listener.end()


class _Compared:
    """Compares lists of tools, each two of them once: many listeners see the same."""

    def __init__(self) -> None:
        # The lists are kept with the verdict, for as long as their addresses name them.
        self._known: dict[tuple[int, int], tuple[bool, object, object]] = {}

    def differ(self, before: Mapping[str, Tool], now: Mapping[str, Tool]) -> bool:
        if before is now:
            return False
        key = (id(before), id(now))
        if key not in self._known:
            self._known[key] = (_listed_fields(before) != _listed_fields(now), before, now)
        return self._known[key][0]


def _listed_fields(tools: Mapping[str, Tool]) -> list[tuple[object, ...]]:
    """Return all that a list tells of tools; how they are reached is not among it."""
    return [
        (
            one.name,
            one.event_type,
            one.description,
            one.parameters,
            one.read_only,
            one.destructive,
            one.idempotent,
        )
        for one in tools.values()
    ]
