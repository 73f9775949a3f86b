"""The durable engine: runs of this process, and access to all others."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.context import acting_as, principal_of, principal_to_request
from beckon_agent.core.records import FINAL, Decision, Ended, StoredRun
from beckon_agent.core.run_events import RunEvent, RunSuspended
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask, OwesAnswer, options_from_request, options_to_request
from beckon_agent.durable.event_log import Housekeeping, ReportsSeen, is_end, is_last, read_log
from beckon_agent.durable.prompts import PromptArchive
from beckon_agent.durable.worker import RunWorker
from beckon_agent.service import Service
from beckon_agent.store.base import NotHeld, Store, StoreUnavailable
from beckon_agent.telemetry.spans import resume_trace, trace_to_request
from beckon_contract.inputs import InputRequest

logger = logging.getLogger(__name__)

_MOST_LOST = 5
"""Processes that may be lost over one step of a run: one that ends each would be a plague."""

_PATIENCE = 60.0  # seconds from the start until an agent that is not ready counts as not coming


@dataclass(frozen=True, slots=True)
class EnginePace:
    """Intervals of a process, in seconds.

    A process loses a run `hold` seconds after the last renewal of its lease. Every `beat` seconds it renews
    its leases and looks for other runs. `look` is the pause between two reads of the store for a follower.
    """

    hold: float = 6.0
    beat: float = 1.0
    look: float = 0.25

    @classmethod
    def from_hold(cls, hold: float) -> "EnginePace":
        """Return the pace of a process with leases of this many seconds.

        It renews them six times in that time, so a single late renewal loses no run.
        """
        return cls(hold, hold / 6)


class RunEngine:
    """Works on runs started or taken over by this process. `serve` must run beside it."""

    def __init__(
        self,
        store: Store,
        service: Service,
        holder: str,
        pace: EnginePace | None = None,
        *,
        keep_seconds: float | None = None,
        owes_answer: OwesAnswer | None = None,
    ) -> None:
        """`holder` is a name unique to this process, never used before.

        Ended runs are stored for `keep_seconds`; `None` is for ever. Without `owes_answer` no run owes its
        answer after its end.
        """
        self._owes_answer = owes_answer or _never_owes
        self.keep_seconds = keep_seconds
        self._store = store
        self._service = service
        self._holder = holder
        self._pace = pace or EnginePace()
        self._workers: dict[str, RunWorker] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._claimed_again: set[str] = set()
        self._look_now = asyncio.Event()
        self._archive = PromptArchive(store.materials)
        self._housekeeping = Housekeeping(store, keep_seconds)
        self._forgetting: set[asyncio.Task[None]] = set()
        self._begun = time.monotonic()

    async def start(self, ask: Ask) -> StoredRun:
        """Store and begin a run. Raises the errors of `Service.admit_request` and of storing it."""
        await self._service.admit_request(ask.hosted, ask.run.id)
        client_tools = tuple(ask.client_tools) or ask.options.client_tools
        options = replace(ask.options, client_tools=client_tools)
        new = replace(
            ask.run,
            request={
                **ask.run.request,
                **options_to_request(options),
                **trace_to_request(),
                **principal_to_request(),
            },
        )
        try:
            run = await self._store.runs.create(new, holder=self._holder, seconds=self._pace.hold)
        except KeyError:
            await self._service.dismiss_run(ask.hosted, ask.run.id)
            raise
        self._begin_run(run, ask.hosted, options)
        return run

    async def follow(self, run_id: str, *, wait: bool = False) -> AsyncGenerator[tuple[int, RunEvent]]:
        """Yield all events from the first on, with their numbers.

        Past events come first, then new ones. The numbers are 1, 2, ….
        """
        number, seen = 0, ReportsSeen()
        while True:
            worker = self._workers.get(run_id)
            # Before the log is read: then the log has all events of a run that has ended.
            run = None if worker is not None else await self._store.runs.get(run_id)
            events = self._from_log(run_id, number) if worker is None else worker.broadcast.follow(number)
            last: RunEvent | None = None
            try:
                async with aclosing(events) as coming:
                    async for number, last in coming:
                        yield number, last
            finally:
                await self._unless_followed(run_id, worker, last)
            if last is not None and is_last(last) and not (wait and isinstance(last, RunSuspended)):
                return
            if worker is None and (run is None or run.status in FINAL):
                return
            if run is not None and run.status == "suspended":
                for report in seen.new_reports(await self._store.journal.list_reports(run_id)):
                    yield number, report
            await asyncio.sleep(0 if worker is not None or run_id in self._workers else self._pace.look)

    async def get(self, run_id: str) -> StoredRun | None:
        """Return a run as it is now."""
        return await self._store.runs.get(run_id)

    async def cancel(self, run_id: str) -> StoredRun | None:
        """Cancel a run unless it has ended; return its state then."""
        worker = self._workers.get(run_id)
        if worker is not None:
            with contextlib.suppress(NotHeld):
                await worker.write_log()  # once the run has ended, no process may
        run = await self._store.runs.get(run_id)
        if run is None:
            return None
        ended = Ended("cancelled", owed=self._owes_answer(run))
        if await self._store.runs.end_run(run_id, None, ended):
            self._stop_run(run_id)
        return await self._store.runs.get(run_id)

    async def delete(self, run_id: str) -> bool:
        """Cancel and delete a run; return True if it existed."""
        await self.cancel(run_id)
        return await self._store.runs.delete(run_id)

    async def decide_call(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        """Decide once on a call with a pending approval. Return True for the first decision."""
        counted = await self._store.journal.store_decision(event_id, decision, by=by, reason=reason)
        self._look_now.set()
        return counted

    async def answer_input(self, event_id: str, filled: InputRequest) -> bool:
        """Store the answers to what the tool of a call requests; return True for the first ones.

        The tool gets them once nothing of the request is left without an answer.
        """
        journal, answer = self._store.journal, filled.answer
        counted = (
            await journal.store_partial_answer(event_id, filled.to_document())
            if answer is None
            else await journal.store_input_answer(event_id, answer.to_document())
        )
        self._look_now.set()
        return counted

    def look_for_runs(self) -> None:
        """Look for runs ready to continue, without waiting for the next beat."""
        self._look_now.set()

    async def serve(self) -> None:
        """Hold the runs of this process and take over others, until cancelled.

        The others are queued runs, and runs of a dead process.
        """
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._housekeeping.run_forever(self._pace.beat))
                await self._keep_beating()
        finally:
            await self._release_all()

    async def _keep_beating(self) -> None:
        while True:
            try:
                await self._run_beat()
            except StoreUnavailable as error:
                logger.warning("the store does not answer: %s", error)
            try:
                async with asyncio.timeout(self._pace.beat):
                    await self._look_now.wait()
            except TimeoutError:
                pass
            self._look_now.clear()

    async def _run_beat(self) -> None:
        await self._release_answered()
        known = set(self._tasks)  # a run that begins during the request is held without being in its answer
        if known:
            # Only these: a run that the store could not begin has no worker, even if we hold it.
            leased = await self._store.runs.renew_leases(self._holder, seconds=self._pace.hold, only=known)
            for run_id in known - leased:
                self._stop_run(run_id)
        if room := self._room_for_runs():
            for run in await self._store.runs.claim_runs(self._holder, seconds=self._pace.hold, most=room):
                if run.id in self._tasks:
                    self._claimed_again.add(run.id)
                    continue
                with acting_as(principal_of(run.request)), resume_trace(run.request):
                    await self._take_over(run)

    async def _release_answered(self) -> None:
        """Release the runs claimed while their worker ended, after they were suspended and answered.

        A run with an expired lease may be claimed before its worker has ended, too. It leaves nothing to
        release.
        """
        if ended := self._claimed_again - self._tasks.keys():
            await self._store.runs.release_runs(self._holder, seconds=0, only=ended)
            self._claimed_again -= ended

    def _room_for_runs(self) -> int:
        """Return the number of further runs with room here.

        It is 0 while the service is draining or its registry is incomplete: runs would only be refused.
        """
        service = self._service
        if service.draining or not service.registry.complete:
            return 0
        return max(0, service.max_runs - max(service.running, len(self._tasks)))

    async def _take_over(self, run: StoredRun) -> None:
        """Continue a run, or end it if this is impossible.

        The caller has set the run's principal. A run is put back if its agent is not ready yet.
        """
        if run.lost >= _MOST_LOST:
            lost = f"{run.lost} processes in a row were lost while they worked on the next step of the run"
            await self._fail_run(run, "agent_lost", f"{lost}; it is not tried again")
            return
        hosted = self._service.registry.find(run.agent)
        if isinstance(hosted, AgentHandle):
            await self._resume_run(run, hosted)
        elif hosted is None:
            await self._fail_run(run, "agent_gone", f"there is no agent {run.agent!r} any more")
        elif time.monotonic() - self._begun > _PATIENCE:
            await self._fail_run(
                run, "agent_not_ready", f"the agent {run.agent!r} is not ready: {hosted.reason}"
            )
        else:  # its key may just not be read yet
            await self._store.runs.release_runs(self._holder, seconds=self._pace.hold, only=[run.id])

    async def _resume_run(self, run: StoredRun, hosted: AgentHandle) -> None:
        try:
            options = options_from_request(run.request)
        except ValueError:  # one run must not take the service with it
            logger.exception("the request of run %s cannot be read", run.id)
            await self._fail_run(
                run, "internal", "the run was stored by a version that this one does not know"
            )
            return
        logger.info("run %s goes on here", run.id)
        self._service.metrics.count_resumed(lost=run.lost > 0)
        self._begin_run(run, hosted, options, resumed=True)

    async def _fail_run(self, run: StoredRun, code: str, message: str) -> None:
        with contextlib.suppress(NotHeld):
            error = {"code": code, "message": message}
            ended = Ended("failed", error=error, owed=self._owes_answer(run))
            await self._store.runs.end_run(run.id, self._holder, ended)

    async def _release_all(self) -> None:
        """Stop everything; another replica takes the runs over at once."""
        tasks = [*self._tasks.values(), *self._forgetting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            await self._store.runs.release_runs(self._holder, seconds=0)
        except StoreUnavailable as error:
            logger.warning("the runs of this process are taken over late: %s", error)

    def _begin_run(
        self, run: StoredRun, hosted: AgentHandle, options: Options, *, resumed: bool = False
    ) -> None:
        worker = self._workers[run.id] = RunWorker(
            self._store,
            run,
            self._holder,
            self._archive,
            owes_answer=self._owes_answer(run),
            later=self._pace.hold,
        )
        worker.resumed = resumed
        task = self._tasks[run.id] = asyncio.create_task(worker.execute_run(self._service, hosted, options))

        def done(_: object) -> None:
            if self._workers.get(run.id) is worker:
                del self._workers[run.id], self._tasks[run.id]
            if worker.lingers:
                self._forget_later(run.id)
            self._look_now.set()

        task.add_done_callback(done)

    def _forget_later(self, run_id: str) -> None:
        """Delete an unkept run after its followers elsewhere saw its end."""
        task = asyncio.create_task(self._housekeeping.delete_soon(run_id))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)

    def _stop_run(self, run_id: str) -> None:
        task = self._tasks.get(run_id)
        if task is not None:
            task.cancel()

    async def _unless_followed(self, run_id: str, worker: RunWorker | None, last: RunEvent | None) -> None:
        """Cancel a foreground run if its last follower left before its end."""
        if worker is None or worker.run.background or worker.broadcast.followers or worker.broadcast.over:
            return
        if last is None or not is_last(last):
            await asyncio.shield(self.cancel(run_id))

    async def _from_log(self, run_id: str, after: int) -> AsyncGenerator[tuple[int, RunEvent]]:
        """Yield the events of the log after a number.

        It stops before the end event of a run that has not ended in the store: its process died before it
        could store the end.
        """
        async with aclosing(read_log(self._store.events, run_id, after)) as events:
            async for number, event in events:
                if is_end(event) and not await self._has_ended(run_id):
                    return  # its process died between the event and the end
                yield number, event

    async def _has_ended(self, run_id: str) -> bool:
        run = await self._store.runs.get(run_id)
        return run is None or run.status in FINAL


def _never_owes(_: StoredRun) -> bool:
    return False
