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
class MemoryRun:
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
        self._runs: dict[str, MemoryRun] = {}

    async def start(self, ask: Ask) -> StoredRun:
        if ask.run.id in self._runs:
            raise RunExists(ask.run.id)
        if self._service.running >= self._service.max_runs:
            raise NoRoom("the limit of runs in progress is reached")
        given = {name: getattr(ask.run, name) for name in ask.run.__dataclass_fields__}
        memory_run = MemoryRun(StoredRun(**given, status="running", created_at=time.time()))
        self._runs[ask.run.id] = memory_run
        memory_run.task = asyncio.create_task(self._run(memory_run, ask))
        return memory_run.stored

    async def _run(self, memory_run: MemoryRun, ask: Ask) -> None:
        try:
            async for event in self._work(ask):
                await self._add(memory_run, event)
        except ModelError as error:
            await self._add(memory_run, RunFailed("model_error", str(error)))

    async def _add(self, memory_run: MemoryRun, event: RunEvent) -> None:
        async with memory_run.changed:
            memory_run.events.append(event)
            if isinstance(event, RunFinished):
                memory_run.stored = replace(memory_run.stored, status="completed")
            memory_run.changed.notify_all()

    async def follow(self, run_id: str, *, wait: bool = False) -> AsyncGenerator[tuple[int, RunEvent]]:
        memory_run = self._runs[run_id]
        number = 0
        while True:
            async with memory_run.changed:
                while len(memory_run.events) <= number:
                    await memory_run.changed.wait()
            event = memory_run.events[number]
            number += 1
            yield number, event
            if isinstance(event, LAST):
                return

    async def get(self, run_id: str) -> StoredRun | None:
        memory_run = self._runs.get(run_id)
        return memory_run.stored if memory_run else None

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
        tasks = [memory_run.task for memory_run in self._runs.values() if memory_run.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def doing(work: Work) -> Callable[[Service], MemoryEngine]:
    """Return what makes an engine whose runs are this work."""
    return lambda service: MemoryEngine(service, work)
