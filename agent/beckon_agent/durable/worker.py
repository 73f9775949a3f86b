"""A worker runs until the run ends, is suspended, or the process stops."""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TypeVar

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.auth.quotas import LimitReached
from beckon_agent.core.context import request_id
from beckon_agent.core.model_types import Message, Turn
from beckon_agent.core.records import Ended, LogEntries, Past, RunStatus, StoredRun
from beckon_agent.core.run_events import (
    CallProgressed,
    Ending,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TurnNoted,
)
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import event_to_document
from beckon_agent.durable.checkpoint_store import StoredCheckpoints, progress_from_past
from beckon_agent.durable.event_log import Broadcast, EventNumbers, is_last, read_log
from beckon_agent.durable.prompts import PromptArchive, PromptRecorder
from beckon_agent.model.errors import ModelError
from beckon_agent.service import NoRoom, Service
from beckon_agent.store.base import NotHeld, Store, StoreUnavailable
from beckon_agent.tool_calls.checkpoint import RunContext, ToolCallState
from beckon_runtime.logs import point_to_log

logger = logging.getLogger(__name__)

_WELL: frozenset[Ending] = frozenset({"stop", "client_call"})
_PAUSE = 0.5  # seconds until a store that did not answer is tried again
_FLUSH = 0.05  # seconds; pieces of an answer come faster than a database likes

Result = TypeVar("Result")


class RunWorker:
    """Works on one run held by this process."""

    def __init__(
        self,
        store: Store,
        run: StoredRun,
        holder: str,
        archive: PromptArchive,
        *,
        owes_answer: bool = False,
        later: float = 0.0,
    ) -> None:
        """A refused resumed run is tried again after `later` seconds.

        It is refused if this process has no room for it. With `owes_answer` its answer is owed if it was
        suspended.
        """
        self.run = run
        self.resumed = False
        """Whether this or another process worked on the run before."""
        self._owes_answer = owes_answer
        self._later = later
        self.broadcast = Broadcast()
        self._store = store
        self._holder = holder
        self._archive = archive
        self.lingers = False
        self._numbers = EventNumbers()
        self._unwritten: list[tuple[RunEvent, bool]] = []
        self._news = asyncio.Event()
        self._writing = asyncio.Lock()
        self._written = 0
        self._over: RunFinished | RunFailed | None = None

    async def execute_run(self, service: Service, hosted: AgentHandle, options: Options) -> None:
        """Work until nothing is left to do here. Raises nothing but cancellation."""
        try:
            await self._restore_events()
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._keep_writing())
                await self._continue_run(service, hosted, options)
                writing.cancel()
        except* NotHeld:
            logger.info("run %s is another process's by now", self.run.id)
        except* StoreUnavailable as errors:
            logger.warning("run %s stops here, to be resumed: %s", self.run.id, errors.exceptions[0])
        except* Exception:
            logger.exception("run %s failed", self.run.id)
            await self._fail_run("internal", f"an unexpected error; {point_to_log('agent', self.run.id)}")
        finally:
            self.broadcast.close()

    async def _restore_events(self) -> None:
        """Restore the events published by earlier processes."""
        if not self.resumed:
            return
        async with aclosing(read_log(self._store.events, self.run.id)) as events:
            async for _, event in events:
                self._numbers.add_earlier(event)
                if isinstance(event, RunFinished | RunFailed):  # of which the store does not know yet
                    self._over = event
                else:
                    self.broadcast.publish(event)
        self._written = self._numbers.last
        self.lingers = self._written > 0 and not self.run.retained

    async def _continue_run(self, service: Service, hosted: AgentHandle, options: Options) -> None:
        match self._over:
            case RunFinished() as end:
                await self._take_event(end)
                return
            case RunFailed(code, message):
                await self._fail_run(code, message)
                return
        past = await self._store.runs.load_past(self.run.id) if self.resumed else Past([], [])
        for missing in self._numbers.missing_events(len(past.turns)):
            self._publish_event(missing)
        messages = await self._load_messages()
        tools, limits = hosted.catalogue.current.tools, hosted.agent.limits
        progress = replace(progress_from_past(past, tools, limits.result_chars), seconds=self.run.worked)
        asking = PromptRecorder(hosted.model)
        stored = StoredCheckpoints(
            self._store, self.run.id, self._holder, self._archive, asking, with_log=self.store_with_log
        )
        journal = _AnnouncedCheckpoints(self, stored)
        context = RunContext(
            self.run.id,
            journal,
            progress,
            may_wait=True,
            conversation=self.run.conversation or "",
            input_methods=self.run.input_methods,
        )
        try:
            recorded = replace(hosted, model=asking)
            async with aclosing(service.run_agent(recorded, messages, options, context=context)) as events:
                async for event in events:
                    await self._take_event(event)
        except (ModelError, NoRoom, LimitReached) as error:
            await self._fail_or_release(error)

    async def _load_messages(self) -> list[Message]:
        """Return the conversation up to the run's own input.

        That is the input alone if the run follows nothing.
        """
        if self.run.previous is None and self.run.conversation is None:
            return list(self.run.input)
        return await self._store.runs.load_messages(self.run.id)

    async def _fail_or_release(self, error: ModelError | NoRoom | LimitReached) -> None:
        """Fail the run, or release it without room here.

        Only a resumed run is released: it continues at another replica, or later.
        """
        if isinstance(error, NoRoom) and self.resumed:
            logger.info("run %s is let go: %s", self.run.id, error)
            await self._store.runs.release_runs(self._holder, seconds=self._later, only=[self.run.id])
            return
        logger.warning("request %s: run %s failed: %s", request_id(), self.run.id, error)
        wait = None if isinstance(error, NoRoom) else error.retry_after
        await self._fail_run(_error_code(error), str(error), math.ceil(wait or 0) or None)

    async def _take_event(self, event: RunEvent) -> None:
        """Publish an event. Followers here get the last one only after the outcome of the run is stored."""
        if isinstance(event, CallProgressed):
            self.broadcast.publish_report(event)
            return
        self._publish_event(event, to_followers=not is_last(event))
        match event:
            case RunFinished():
                status: RunStatus = "completed" if event.ending in _WELL else "incomplete"
                await self._end_run(Ended(status, event.ending, event.usage, added=event.messages))
                self.broadcast.publish(event)
            case RunSuspended():
                await self._suspend_run()
                self.broadcast.publish(event)

    async def _suspend_run(self) -> None:
        """Suspend the run. A form that has come too late for this process is published by the next one."""
        forms = self._numbers.published_forms
        await self.store_with_log(
            lambda entries: self._store.runs.suspend(self.run.id, self._holder, entries, forms=forms)
        )

    async def _fail_run(self, code: str, message: str, retry_after: int | None = None) -> None:
        failed = Ended("failed", error={"code": code, "message": message})
        event = RunFailed(code, message, retry_after)
        try:
            self._publish_event(event, to_followers=False)
            if await self._end_run(failed):
                self.broadcast.publish(event)
        except (NotHeld, StoreUnavailable) as problem:
            logger.warning("that run %s failed could not be stored: %r", self.run.id, problem)

    async def _end_run(self, ended: Ended) -> bool:
        suspended = any(isinstance(event, RunSuspended) for event in self.broadcast.events)
        how = replace(ended, lingers=self.lingers, owed=self._owes_answer and suspended)
        return await self.store_with_log(
            lambda entries: self._store.runs.end_run(self.run.id, self._holder, how, entries)
        )

    def publish_turn(self, step: int) -> None:
        """Publish `TurnNoted` for a stored turn."""
        self._publish_event(TurnNoted(step))

    def _publish_event(self, event: RunEvent, *, to_followers: bool = True) -> None:
        """Publish an event to the log, and to followers here.

        A stream in the background may be joined at any replica: its followers get only events that are
        stored.
        """
        if self._numbers.number_event(event) is None:
            return
        later = to_followers and self.run.background
        self._unwritten.append((event, later))
        self._news.set()
        if to_followers and not later:
            self.broadcast.publish(event)

    async def _keep_writing(self) -> None:
        while True:
            await self._news.wait()
            if not self.run.background:  # else a client waits for the rest
                await asyncio.sleep(_FLUSH)
            try:
                await self.write_log()
            except StoreUnavailable as error:
                # The calls in flight must not end with it: they would not be posted again.
                logger.warning("the log of run %s is written later: %s", self.run.id, error)
                await asyncio.sleep(_PAUSE)
                self._news.set()
            if self.run.background:
                await asyncio.sleep(_FLUSH)

    async def write_log(self) -> None:
        """Write all published events to the log; they are stored on return."""
        if self._unwritten or self._writing.locked():
            await self.store_with_log(
                lambda entries: self._store.events.append(self.run.id, self._holder, entries)
            )

    async def store_with_log(self, step: Callable[[LogEntries], Awaitable[Result]]) -> Result:
        """Call a step of the store with all unwritten events.

        The step stores them in the log together with its own change.
        """
        async with self._writing:  # one piece after the other, or a kill would leave a gap
            self._news.clear()
            events = list(self._unwritten)
            entries = LogEntries(self._written + 1, [event_to_document(event) for event, _ in events])
            result = await step(entries)
            self._written += len(events)
            del self._unwritten[: len(events)]
            for event, later in events:
                if later:
                    self.broadcast.publish(event)
            return result


class _AnnouncedCheckpoints:
    """Stored checkpoints with an event for each turn."""

    def __init__(self, worker: RunWorker, journal: StoredCheckpoints) -> None:
        self._worker = worker
        self._journal = journal
        self.record_sending = journal.record_sending
        self.wait_for_reply = journal.wait_for_reply
        self.record_acceptance = journal.record_acceptance
        self.record_input_request = journal.record_input_request
        self.record_result = journal.record_result

    async def record_turn(self, step: int, turn: Turn, calls: Sequence[ToolCallState]) -> None:
        await self._journal.record_turn(step, turn, calls)
        self._worker.publish_turn(step)


def _error_code(error: ModelError | NoRoom | LimitReached) -> str:
    """Return the error code for the client."""
    match error:
        case LimitReached():
            return "rate_limit_exceeded"
        case NoRoom():
            return "overloaded"
        case ModelError():
            return error.ours or error.code or "model_error"
