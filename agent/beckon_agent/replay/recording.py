"""A run with everything stored of it, as read for a replay.

The replayed run is read by the same functions.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from beckon_agent.core.model_types import Message
from beckon_agent.core.records import Past, StoredCall, StoredRun, StoredTurn
from beckon_agent.core.run_events import (
    AnnotationAdded,
    AnswerDropped,
    CallFinished,
    CallStarted,
    Ending,
    InputRequested,
    ReasoningDelta,
    RunEvent,
    RunSuspended,
    TextDelta,
    TurnNoted,
)
from beckon_agent.durable.base import event_from_document
from beckon_agent.durable.event_log import is_end
from beckon_agent.store.base import Store
from beckon_contract.inputs import first_call_id

Piece = TextDelta | ReasoningDelta

_PAGE = 500
_WITH_A_NOTE: frozenset[Ending | None] = frozenset({"step_limit", "time_limit", "token_limit"})


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """The prompt of one answer: the system message and the tools.

    The tools are those sent to the model. `limit` is the largest number of tools the model would have
    accepted, `None` if unknown.
    """

    model: str
    system: Message
    tools: Sequence[Mapping[str, Any]]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Recording:
    """A stored run.

    `conversation` is that before the run. `added` are the messages added by the run, `None` if it did
    not end by itself. `events` is its log without void entries; `dropped` counts the void answers. `prompts`
    has one entry for each turn, `None` if its prompt is not stored in full.
    """

    run: StoredRun
    conversation: Sequence[Message]
    added: Sequence[Message] | None
    past: Past
    events: Sequence[RunEvent]
    dropped: int
    prompts: Sequence[RecordedPrompt | None]

    @property
    def is_whole(self) -> bool:
        """True if the log includes the end of the run.

        It may not after the death of a process or a cancellation.
        """
        return bool(self.events) and is_end(self.events[-1])

    def find_turn(self, step: int) -> StoredTurn | None:
        """Return an answer of the model, `None` after the last."""
        return self.past.turns[step] if step < len(self.past.turns) else None

    def calls_of(self, step: int) -> list[StoredCall]:
        """Return the calls of a turn."""
        return [call for call in self.past.calls if call.step == step]

    def pieces_of(self, step: int) -> list[Piece]:
        """Return the published pieces of an answer.

        After the last turn these are the pieces of an unfinished answer.
        """
        steps: list[list[Piece]] = [[]]
        for event in self.events:
            match event:
                case TextDelta() | ReasoningDelta():
                    steps[-1].append(event)
                case TurnNoted():
                    steps.append([])
        if self.run.ending in _WITH_A_NOTE and steps[-1]:
            del steps[-1][-1]  # said by the loop, not by the model
        return steps[step] if step < len(steps) else []

    def finished_after(self, time: int) -> set[str]:
        """Return the ids of calls answered between the nth suspension and the next."""
        times = itertools.accumulate(isinstance(event, RunSuspended) for event in self.events)
        return {
            event.id
            for waited, event in zip(times, self.events, strict=True)
            if waited == time and isinstance(event, CallFinished)
        }

    def finished_calls(self) -> list[CallFinished]:
        """Return the answers of calls in the order of publication."""
        return [event for event in self.events if isinstance(event, CallFinished)]

    def late_calls(self) -> frozenset[str]:
        """Return the ids of the calls still running at a suspension.

        Their answers came later. The log is more reliable here than the deadlines: a process may have died
        before it could suspend the run.
        """
        running: set[str] = set()
        late: set[str] = set()
        for event in self.events:
            match event:
                case CallStarted(id=call_id):
                    running.add(call_id)
                case CallFinished(id=call_id):
                    running.discard(call_id)
                case RunSuspended():
                    late |= running
        return frozenset(late)


async def read_recording(store: Store, run: StoredRun) -> Recording:
    """Read the recording of a run. Raises `StoreUnavailable`, and `ValueError` for an unreadable log."""
    past = _without_inputs(await store.runs.load_past(run.id))
    events, dropped = _valid_entries(await _read_log(store, run.id))
    is_complete = run.status in ("completed", "incomplete")
    return Recording(
        run=run,
        conversation=await store.runs.load_messages(run.id),
        added=await store.runs.load_added_messages(run.id) if is_complete else None,
        past=past,
        events=events,
        dropped=dropped,
        prompts=await _read_prompts(store, past.turns),
    )


def _without_inputs(past: Past) -> Past:
    """Return the past without the input that persons gave: each call has the id of its first event."""
    calls = [
        replace(call, event_id=first_call_id(call.event_id), input_request=None, input_answer=None)
        for call in past.calls
    ]
    return Past(past.turns, calls)


async def _read_log(store: Store, run_id: str) -> list[RunEvent]:
    events: list[RunEvent] = []
    while page := await store.events.read_after(run_id, len(events), most=_PAGE):
        events += [event_from_document(document) for _, document in page]
    return events


def _valid_entries(log: Sequence[RunEvent]) -> tuple[list[RunEvent], int]:
    """Return a log without void entries, and the number of dropped answers.

    It is the log of a run without the death of a process.
    """
    events: list[RunEvent] = []
    dropped = 0
    for event in log:
        if isinstance(event, AnswerDropped):
            dropped += 1
            while events and isinstance(events[-1], TextDelta | ReasoningDelta | AnnotationAdded):
                events.pop()
        elif isinstance(event, InputRequested):
            continue  # a replay takes the result of the last round at once
        elif not (isinstance(event, RunSuspended) and events and events[-1] == event):
            events.append(event)
    return events, dropped


async def _read_prompts(store: Store, turns: Sequence[StoredTurn]) -> list[RecordedPrompt | None]:
    noted = [turn.prompt for turn in turns if turn.prompt is not None]
    digests = {digest for noted_prompt in noted for digest in (noted_prompt["system"], noted_prompt["tools"])}
    documents = await store.materials.read_documents(digests)
    tools = await store.materials.read_documents(
        digest for noted_prompt in noted for digest in documents.get(noted_prompt["tools"], ())
    )
    return [_complete_prompt(turn.prompt, documents | tools) for turn in turns]


def _complete_prompt(
    noted_prompt: Mapping[str, Any] | None, materials: Mapping[str, Any]
) -> RecordedPrompt | None:
    """Return the complete prompt of a turn, or `None`."""
    if noted_prompt is None:
        return None
    try:
        tools = [materials[digest] for digest in materials[noted_prompt["tools"]]]
        return RecordedPrompt(
            noted_prompt["model"], materials[noted_prompt["system"]], tools, noted_prompt.get("limit")
        )
    except KeyError:
        return None
