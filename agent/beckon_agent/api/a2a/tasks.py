"""Stored runs as tasks of A2A: their states, their answers, and the updates of a stream.

A run's text is one artifact. A stream of it can be read again from the start, at any replica: it is made of
the event log alone.
"""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from a2a.helpers.proto_helpers import new_text_part
from a2a.types.a2a_pb2 import (
    Artifact,
    Part,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

from beckon_agent.api.a2a.messages import to_agent_message, to_history
from beckon_agent.api.a2a.person import write_requests
from beckon_agent.api.responses.stream import events_of_turns
from beckon_agent.core import json_values
from beckon_agent.core.records import FINAL, RunStatus, StoredCall, StoredRun
from beckon_agent.core.run_events import (
    AnswerDropped,
    CallFinished,
    CallProgressed,
    CallStarted,
    RunEvent,
    RunSuspended,
    TextDelta,
    TurnNoted,
)
from beckon_agent.durable.base import Engine
from beckon_agent.store.base import Store

FACE = "a2a"
"""What runs of this face are stored under; also the member of a run's request with the ids of its client."""

CALL_METADATA = "toolCall"
"""The member of an update's metadata with the tool call that it reports."""

_ANSWER = "answer"
_STATES: Mapping[RunStatus, TaskState] = {
    "queued": TaskState.TASK_STATE_SUBMITTED,
    "running": TaskState.TASK_STATE_WORKING,
    "suspended": TaskState.TASK_STATE_WORKING,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "incomplete": TaskState.TASK_STATE_FAILED,
    "failed": TaskState.TASK_STATE_FAILED,
    "cancelled": TaskState.TASK_STATE_CANCELED,
}

TaskUpdate = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
"""One event of a stream."""


def state_of(status: RunStatus, *, needs_person: bool) -> TaskState:
    """Return the state of a task. A run that waits for a tool alone is working."""
    if needs_person and status not in FINAL:
        return TaskState.TASK_STATE_INPUT_REQUIRED
    return _STATES[status]


def context_of(run: StoredRun) -> str:
    """Return the context id of a task, as its client knows it."""
    ids = json_values.as_mapping(run.request.get(FACE))
    return json_values.as_text(ids.get("context")) or run.conversation or run.id


def pending_calls(calls: Sequence[StoredCall]) -> list[StoredCall]:
    """Return the calls that wait for a person: for a decision, or for input."""
    return [call for call in calls if call.needs_person]


def _write_status(run: StoredRun, pending: Sequence[StoredCall]) -> TaskStatus:
    status = TaskStatus(state=state_of(run.status, needs_person=bool(pending)))
    status.timestamp.FromNanoseconds(int((run.ended_at or run.since or run.created_at) * 1e9))
    parts: list[Part] = []
    if status.state == TaskState.TASK_STATE_INPUT_REQUIRED:
        parts = write_requests(pending)
    elif run.status == "failed" and run.error:
        parts = [new_text_part(f"{run.error['code']}: {run.error['message']}")]
    elif run.status == "incomplete":
        parts = [new_text_part(f"the answer is not complete: it ended by {run.ending}")]
    if parts:
        status.message.CopyFrom(to_agent_message(run.id, context_of(run), parts))
    return status


def _answer_artifact(text: str) -> Artifact:
    return Artifact(artifact_id=_ANSWER, name=_ANSWER, parts=[new_text_part(text)])


async def read_task(store: Store, run: StoredRun) -> Task:
    """Return a run as a task, as it is now."""
    past = await store.runs.load_past(run.id)
    text = "".join(event.text for event in events_of_turns(run, past) if isinstance(event, TextDelta))
    pending = pending_calls(past.calls) if run.status not in FINAL else []
    context = context_of(run)
    ids = json_values.as_mapping(run.request.get(FACE))
    message_id = json_values.as_text(ids.get("message")) or run.id
    return Task(
        id=run.id,
        context_id=context,
        status=_write_status(run, pending),
        artifacts=[_answer_artifact(text)] if text else [],
        history=list(to_history(run.input, message_id, run.id, context)),
    )


@dataclass(slots=True)
class _UpdateEncoder:
    """Encodes the events of a run as updates of its task."""

    run: StoredRun
    complete: str = ""
    current: str = ""
    begun: bool = False

    def encode_event(self, event: RunEvent) -> Iterator[TaskUpdate]:
        """Yield the updates of an event; a suspension and the end are states of the stored run."""
        match event:
            case TextDelta():
                self.current += event.text
                yield self._artifact(event.text, append=self.begun)
                self.begun = True
            case TurnNoted():
                self.complete += self.current
                self.current = ""
            case AnswerDropped():
                self.current = ""
                if self.begun:
                    yield self._artifact(self.complete, append=False)
            case CallStarted():
                yield self._call_update(event.id, event.name, {"state": "started"})
            case CallFinished():
                yield self._call_update(event.id, event.name, {"state": "failed" if event.failed else "done"})
            case CallProgressed():
                report = {"progress": event.done, "total": event.total, "message": event.message}
                yield self._call_update(event.id, event.name, {"state": "started", **report})

    def _artifact(self, text: str, *, append: bool) -> TaskArtifactUpdateEvent:
        return TaskArtifactUpdateEvent(
            task_id=self.run.id,
            context_id=context_of(self.run),
            artifact=_answer_artifact(text),
            append=append,
        )

    def _call_update(self, call_id: str, name: str, members: Mapping[str, object]) -> TaskStatusUpdateEvent:
        update = status_update(self.run, TaskStatus(state=TaskState.TASK_STATE_WORKING))
        update.metadata.update({CALL_METADATA: {"id": call_id, "name": name, **members}})
        return update


def status_update(run: StoredRun, status: TaskStatus) -> TaskStatusUpdateEvent:
    """Return the update with a task's status."""
    return TaskStatusUpdateEvent(task_id=run.id, context_id=context_of(run), status=status)


async def follow_task(
    engine: Engine, store: Store, run: StoredRun, *, hold: bool
) -> AsyncGenerator[TaskUpdate]:
    """Yield a task without its answer, then all its updates from the start, as they occur.

    The stream ends with the task, and without `hold` when the task waits for a person.
    """
    task = await read_task(store, run)
    task.ClearField("artifacts")
    yield task
    encoder = _UpdateEncoder(run)
    async with aclosing(engine.follow(run.id, wait=True)) as events:
        async for _, event in events:
            for update in encoder.encode_event(event):
                yield update
            if isinstance(event, RunSuspended):
                status = await _read_status(store, run)
                yield status_update(run, status)
                if status.state == TaskState.TASK_STATE_INPUT_REQUIRED and not hold:
                    return
    yield status_update(run, await _read_status(store, run))


async def _read_status(store: Store, run: StoredRun) -> TaskStatus:
    """Return the status of a task now; a deleted one was cancelled before."""
    stored = await store.runs.get(run.id)
    if stored is None:
        return TaskStatus(state=TaskState.TASK_STATE_CANCELED)
    past = await store.runs.load_past(run.id)
    return _write_status(stored, pending_calls(past.calls) if stored.status not in FINAL else [])


async def wait_for_task(engine: Engine, store: Store, run: StoredRun) -> StoredRun:
    """Return the run of a task once it has ended or is suspended."""
    async with aclosing(engine.follow(run.id, wait=True)) as events:
        async for _, event in events:
            if isinstance(event, RunSuspended):
                stored = await store.runs.get(run.id)
                if stored is None or stored.status == "suspended":
                    break
    return await store.runs.get(run.id) or run
