"""Playing a recording: the engine and the loop as ever, over a store that is thrown away at the end."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from beckon_agent.engine.base import Ask, EngineEvent
from beckon_agent.engine.engine import Pace, RunEngine
from beckon_agent.engine.options import from_request
from beckon_agent.metrics import Metrics
from beckon_agent.replay.caller import RecordedCaller
from beckon_agent.replay.differences import Difference
from beckon_agent.replay.live import LiveCaller, LiveTools
from beckon_agent.replay.model import RecordedModel
from beckon_agent.replay.order import End, Order
from beckon_agent.replay.recording import Recording, read
from beckon_agent.roster import Hosted, OneAgent
from beckon_agent.runs import RunSuspended
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.store.records import CallState, NewRun, StoredCall

_PACE = Pace(hold=3600.0, beat=0.05, look=0.01)
_WITHOUT_END = 1e9  # seconds; how long things took is recorded, too
_SIDE_BY_SIDE = 1_000_000  # the order in which calls end is recorded
_WAITING = ("approval", "accepted")


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a replay; `asked` is where the model was asked something else, if it was."""

    recording: Recording
    asked: Difference | None


async def play(recording: Recording, hosted: Hosted, store: Store, live: LiveTools | None = None) -> Played:
    """Play a recording with an agent as it is today, over an empty store that is thrown away.

    With `live` its calls are made for real beside that.
    """
    order, end = Order(recording, store), End()
    recorded = RecordedCaller(recording, order, end)
    caller = recorded if live is None else LiveCaller(recorded, live)
    model = RecordedModel(recording, end, tolerant=live is not None)
    limits = replace(hosted.agent.limits, seconds=_WITHOUT_END, parallel_calls=_SIDE_BY_SIDE)
    playing = replace(hosted, model=model, agent=replace(hosted.agent, limits=limits))
    # Who goes on with a suspended run asks for its agent, and must not find the real one.
    roster = OneAgent(playing, asyncio.Event().wait)
    engine = RunEngine(store, Service(roster, caller, Metrics(), max_runs=2), "replay", _PACE)
    stage = _Stage(recording, store, engine, order, end)
    played = await stage.run(Ask(_new(recording), playing, from_request(recording.run.request)))
    return Played(played, end.asked)


def _new(recording: Recording) -> NewRun:
    """Return the run as it was before its first step; what it went on from is a part of its input."""
    run = recording.run
    return NewRun(
        id=run.id,
        owner=run.owner,
        agent=run.agent,
        face=run.face,
        input=recording.found,
        request=run.request,
        background=True,
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    recording: Recording
    store: Store
    engine: RunEngine
    order: Order
    end: End

    async def run(self, ask: Ask) -> Recording:
        """Run to the end, and return what is kept of it; its log may be written a little later than told."""
        async with _beside(self.engine.serve()):
            started = await self.engine.start(ask)
            async with _beside(self._stop_at_the_end(started.id)):
                told = await self._follow(started.id)
        ended = await self.store.runs.get(started.id)
        return replace(await read(self.store, ended or started), events=told)

    async def _stop_at_the_end(self, run_id: str) -> None:
        await self.end.reached.wait()
        await self.engine.cancel(run_id)

    async def _follow(self, run_id: str) -> list[EngineEvent]:
        told: list[EngineEvent] = []
        async with aclosing(self.engine.follow(run_id, wait=True)) as events:
            async for _, event in events:
                told.append(event)
                self.order.told(event)
                if isinstance(event, RunSuspended):
                    await self._act(run_id, sum(isinstance(event, RunSuspended) for event in told))
        return told

    async def _act(self, run_id: str, time: int) -> None:
        """Do what people and late answers did then, when the run waited for the nth `time`.

        Where nobody did anything, nothing follows. Decisions are not held up by tools that answer later.
        """
        then = {call.event_id: call for call in self.recording.past.calls}
        past = await self.store.runs.past(run_id)
        waiting = [(call.state, then.get(call.event_id)) for call in past.calls if call.state in _WAITING]
        known = [(state, call) for state, call in waiting if call is not None and _has_come(state, call)]
        if len(known) < len(waiting):
            self.end.reached.set()
            return
        finished = self.recording.finished_after(time)
        now = [(state, call) for state, call in known if state == "approval" or call.id in finished]
        for state, call in now or known:
            await self._answer(state, call)
        self.engine.look()

    async def _answer(self, state: CallState, call: StoredCall) -> None:
        if state == "approval" and call.decision is not None:
            by, reason = call.decided_by or "", call.decision_reason or ""
            await self.engine.decide(call.event_id, call.decision, by=by, reason=reason)
        else:
            await self.store.journal.finish(
                call.event_id, result=call.result, failed=call.failed, seconds=call.seconds
            )


def _has_come(state: CallState, call: StoredCall) -> bool:
    """Whether what a call waits for in this state had come in the recorded run."""
    return call.decision is not None if state == "approval" else call.state == "done"


@asynccontextmanager
async def _beside(work: Coroutine[object, object, None]) -> AsyncIterator[None]:
    """Do some work to the end of the block."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
