"""Replaying a recording with the engine and the loop, over a temporary store."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from beckon_agent.agents.registry import AgentHandle, SingleAgent
from beckon_agent.core.context import request_id
from beckon_agent.core.records import FINAL, CallState, NewRun, StoredCall, StoredRun
from beckon_agent.core.run_events import RunEvent, RunSuspended
from beckon_agent.durable.base import Ask, options_from_request
from beckon_agent.durable.engine import EnginePace, RunEngine
from beckon_agent.replay.callers import (
    LiveCall,
    LiveCaller,
    LiveTools,
    RecordedCaller,
    RecordedModel,
    with_effects,
)
from beckon_agent.replay.compare import Difference, End, RecordedOrder, compare_recordings
from beckon_agent.replay.recording import Recording, read_recording
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.telemetry.metrics import Metrics

_PACE = EnginePace(hold=3600.0, beat=0.05, look=0.01)
_WITHOUT_END = 1e9  # seconds; how long things took is recorded, too
_SIDE_BY_SIDE = 1_000_000  # the order in which calls end is recorded
_WAITING = ("approval", "accepted")


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The outcome of a replay.

    `other_prompt` is the first difference of a prompt from the recorded one, `None` if there is none.
    """

    recording: Recording
    other_prompt: Difference | None


async def play_recording(
    recording: Recording, hosted: AgentHandle, store: Store, live: LiveTools | None = None
) -> ReplayOutcome:
    """Play a recording with today's agent over an empty, temporary store.

    With `live`, its calls are made for real as well.
    """
    order, end = RecordedOrder(recording, store), End()
    recorded = RecordedCaller(recording, order, end)
    caller = recorded if live is None else LiveCaller(recorded, live)
    model = RecordedModel(recording, end, tolerant=live is not None)
    limits = replace(hosted.agent.limits, seconds=_WITHOUT_END, parallel_calls=_SIDE_BY_SIDE)
    playing = replace(hosted, model=model, agent=replace(hosted.agent, limits=limits))
    # A suspended run is continued by its agent; here it must not find the real one.
    registry = SingleAgent(playing, asyncio.Event().wait)
    engine = RunEngine(store, Service(registry, caller, Metrics(), max_runs=2), "replay", _PACE)
    stage = _Stage(recording, store, engine, order, end)
    played = await stage.play_recording(
        Ask(_new_run(recording), playing, options_from_request(recording.run.request))
    )
    return ReplayOutcome(played, end.other_prompt)


def _new_run(recording: Recording) -> NewRun:
    """Return the run in its state before the first step.

    An earlier conversation continued by the run is part of its input.
    """
    run = recording.run
    return NewRun(
        id=run.id,
        owner=run.owner,
        agent=run.agent,
        face=run.face,
        input=recording.conversation,
        request=run.request,
        background=True,
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    recording: Recording
    store: Store
    engine: RunEngine
    order: RecordedOrder
    end: End

    async def play_recording(self, ask: Ask) -> Recording:
        """Run to the end, and return the resulting recording.

        Its events are those followed live: the log may be written a little later than they are published.
        """
        async with _run_beside(self.engine.serve()):
            started = await self.engine.start(ask)
            async with _run_beside(self._cancel_at_end(started.id)):
                events = await self._follow_run(started.id)
        ended = await self.store.runs.get(started.id)
        return replace(await read_recording(self.store, ended or started), events=events)

    async def _cancel_at_end(self, run_id: str) -> None:
        await self.end.reached.wait()
        await self.engine.cancel(run_id)

    async def _follow_run(self, run_id: str) -> list[RunEvent]:
        events: list[RunEvent] = []
        async with aclosing(self.engine.follow(run_id, wait=True)) as followed:
            async for _, event in followed:
                events.append(event)
                self.order.note_event(event)
                if isinstance(event, RunSuspended):
                    await self._repeat_decisions(
                        run_id, sum(isinstance(event, RunSuspended) for event in events)
                    )
        return events

    async def _repeat_decisions(self, run_id: str, time: int) -> None:
        """Repeat the recorded decisions and late answers of the nth suspension.

        If one of them is missing in the recorded run, the replay ends. Decisions do not wait for late tools.
        """
        then = {call.event_id: call for call in self.recording.past.calls}
        past = await self.store.runs.load_past(run_id)
        waiting = [(call.state, then.get(call.event_id)) for call in past.calls if call.state in _WAITING]
        known = [(state, call) for state, call in waiting if call is not None and _has_come(state, call)]
        if len(known) < len(waiting):
            self.end.reached.set()
            return
        finished = self.recording.finished_after(time)
        now = [(state, call) for state, call in known if state == "approval" or call.id in finished]
        for state, call in now or known:
            await self._answer_late(state, call)
        self.engine.look_for_runs()

    async def _answer_late(self, state: CallState, call: StoredCall) -> None:
        if state == "approval" and call.decision is not None:
            by, reason = call.decided_by or "", call.decision_reason or ""
            await self.engine.decide_call(call.event_id, call.decision, by=by, reason=reason)
        else:
            await self.store.journal.finish_call(
                call.event_id, result=call.result, failed=call.failed, seconds=call.seconds
            )


def _has_come(state: CallState, call: StoredCall) -> bool:
    """Return True if the recorded run has the awaited decision or answer."""
    return call.decision is not None if state == "approval" else call.state == "done"


@asynccontextmanager
async def _run_beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Do some work to the end of the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


logger = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds beyond those that the tools may take


class CannotReplay(Exception):
    """This run cannot be played; `code` is a word for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class MayHaveEffects(CannotReplay):
    """Tools with possible effects would be called without permission."""

    def __init__(self, tools: Sequence[str]) -> None:
        names = ", ".join(tools)
        super().__init__(
            "may-have-effects",
            f"these tools are not declared read-only, and would be called for real: {names}; allow that with "
            "'effects', or declare those that only read with the annotation beckon.dev/read-only",
        )
        self.tools = tools


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of a replay: real tool calls, and permission for effects."""

    live_tools: bool = False
    effects: bool = False


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The outcome of a replay."""

    recording: Recording
    live: bool
    calls: Sequence[LiveCall]
    differences: Sequence[Difference]

    @property
    def same(self) -> bool:
        """True if nothing differs, byte for byte."""
        return not self.differences and all(call.same for call in self.calls)

    @property
    def unknown_prompts(self) -> int:
        """The number of answers without a stored prompt."""
        return sum(prompt is None for prompt in self.recording.prompts)


class Replayer:
    """Plays the runs of a store with the agents of a service."""

    def __init__(self, store: Store, service: Service) -> None:
        self._store = store
        self._service = service

    async def prepare_recording(
        self, run: StoredRun, options: ReplayOptions, hosted: AgentHandle
    ) -> Recording:
        """Return the recording of a run for a replay.

        Raises `CannotReplay` if the run cannot or may not be replayed.
        """
        if run.status not in FINAL:
            raise CannotReplay("not-ended", f"the run is {run.status}; it can be replayed when it has ended")
        try:
            recording = await read_recording(self._store, run)
        except (KeyError, ValueError):
            message = "what is stored of this run is of another version of Beckon, and cannot be read"
            raise CannotReplay("unreadable", message) from None
        if options.live_tools and not options.effects:
            tools = with_effects(recording, hosted.catalogue.current.tools)
            if tools:
                raise MayHaveEffects(tools)
        return recording

    async def replay(
        self, recording: Recording, options: ReplayOptions, hosted: AgentHandle
    ) -> AsyncGenerator[LiveCall | ReplayReport]:
        """Yield each real call, and then the report. Raises `NoRoom` and `CannotReplay`."""
        events: asyncio.Queue[LiveCall | None] = asyncio.Queue()
        live = None
        if options.live_tools:
            live = LiveTools(self._service, hosted, events.put_nowait, effects=options.effects)
            logger.info(
                "request %s: run %s is replayed with live tools, %s effects",
                request_id(),
                recording.run.id,
                "with" if options.effects else "without",
            )
        calls: list[LiveCall] = []
        with self._service.count_run(), hosted.held():
            playing = asyncio.create_task(self._play_recording(recording, hosted, live))
            playing.add_done_callback(lambda _: events.put_nowait(None))
            try:
                while (call := await events.get()) is not None:
                    calls.append(call)
                    yield call
                yield _make_report(recording, playing.result(), options, calls)
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)

    async def _play_recording(
        self, recording: Recording, hosted: AgentHandle, live: LiveTools | None
    ) -> ReplayOutcome:
        seconds = _PATIENCE + (hosted.agent.limits.seconds if live else 0.0)
        store = await self._store.open_scratch()
        try:
            async with asyncio.timeout(seconds):
                return await play_recording(recording, hosted, store, live)
        except TimeoutError:
            raise CannotReplay("no-end", f"the replay did not end within {seconds:g} s") from None
        finally:
            await store.aclose()


def _make_report(
    recording: Recording, played: ReplayOutcome, options: ReplayOptions, calls: Sequence[LiveCall]
) -> ReplayReport:
    """Compare the recordings, and return the report.

    If a different prompt ended the replay, it is the only difference.
    """
    differences = [] if played.other_prompt is None else [played.other_prompt]
    if played.other_prompt is None or options.live_tools:
        differences += compare_recordings(recording, played.recording)
    return ReplayReport(recording, options.live_tools, calls, differences)
