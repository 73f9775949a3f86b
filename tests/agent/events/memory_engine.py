"""An engine that keeps its runs in memory: what the face of events needs of one."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from typing import Self

from beckon_agent.core.records import Decision, StoredRun
from beckon_agent.core.run_events import RunEvent, RunFailed, RunFinished, RunSuspended
from beckon_agent.durable.base import Ask
from beckon_agent.model.errors import ModelError
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import RunExists
from beckon_contract.inputs import InputRequest

LAST = RunFinished | RunFailed | RunSuspended
Work = Callable[[Ask], AsyncGenerator[RunEvent]]


@dataclass
class Kept:
    """One run: what happened so far, and who makes it happen."""

    stored: StoredRun
    events: list[RunEvent] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    task: "asyncio.Task[None] | None" = None


class MemoryEngine:
    """Runs asks by the service's loop, or by the `work` that a test gives."""

    def __init__(self, service: Service, work: Work | None = None) -> None:
        self._service = service
        self._work = work or (lambda ask: service.run_agent(ask.hosted, ask.run.input, ask.options))
        self._runs: dict[str, Kept] = {}

    async def start(self, ask: Ask) -> StoredRun:
        if ask.run.id in self._runs:
            raise RunExists(ask.run.id)
        if self._service.running >= self._service.max_runs:
            raise NoRoom("the limit of runs in progress is reached")
        given = {name: getattr(ask.run, name) for name in ask.run.__dataclass_fields__}
        kept = Kept(StoredRun(**given, status="running", created_at=time.time()))
        self._runs[ask.run.id] = kept
        kept.task = asyncio.create_task(self._run(kept, ask))
        return kept.stored

    async def _run(self, kept: Kept, ask: Ask) -> None:
        try:
            async for event in self._work(ask):
                await self._add(kept, event)
        except ModelError as error:
            await self._add(kept, RunFailed("model_error", str(error)))

    async def _add(self, kept: Kept, event: RunEvent) -> None:
        async with kept.changed:
            kept.events.append(event)
            if isinstance(event, RunFinished):
                kept.stored = replace(kept.stored, status="completed")
            kept.changed.notify_all()

    async def follow(self, run_id: str, *, wait: bool = False) -> AsyncGenerator[tuple[int, RunEvent]]:
        kept = self._runs[run_id]
        number = 0
        while True:
            async with kept.changed:
                while len(kept.events) <= number:
                    await kept.changed.wait()
            event = kept.events[number]
            number += 1
            yield number, event
            if isinstance(event, LAST):
                return

    async def get(self, run_id: str) -> StoredRun | None:
        kept = self._runs.get(run_id)
        return kept.stored if kept else None

    async def cancel(self, run_id: str) -> StoredRun | None:
        raise NotImplementedError

    async def delete(self, run_id: str) -> bool:
        raise NotImplementedError

    async def decide_call(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        raise NotImplementedError

    async def answer_input(self, event_id: str, filled: InputRequest) -> bool:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        """Return the engine."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every run."""
        tasks = [kept.task for kept in self._runs.values() if kept.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def doing(work: Work) -> Callable[[Service], MemoryEngine]:
    """Return what makes an engine whose runs are this work."""
    return lambda service: MemoryEngine(service, work)
