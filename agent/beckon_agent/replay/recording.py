"""A run with all that is kept of it, as a replay reads it; what was played is read in the same way."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beckon_agent.core.model_types import Message, ReasoningDelta, TextDelta
from beckon_agent.core.records import Past, StoredCall, StoredRun, StoredTurn
from beckon_agent.core.run_types import CallFinished, CallStarted, Ending, RunSuspended
from beckon_agent.durable.base import AnswerDropped, EngineEvent, TurnNoted
from beckon_agent.durable.event_log import is_end
from beckon_agent.durable.serialization import event_from_document
from beckon_agent.store.base import Store

Piece = TextDelta | ReasoningDelta

_PAGE = 500
_WITH_A_NOTE: frozenset[Ending | None] = frozenset({"step_limit", "time_limit", "token_limit"})


@dataclass(frozen=True, slots=True)
class RecordedPrompt:
    """What the model was asked for one answer: the system's message, and its tools as it was told of them.

    `limit` is how many tools it would have taken, `None` where nobody asked.
    """

    model: str
    system: Message
    tools: Sequence[Mapping[str, Any]]
    limit: int | None


@dataclass(frozen=True, slots=True)
class Recording:
    """A stored run.

    `found` is the conversation as the run found it, `added` what it put behind that, `None` where it did
    not come to an end by itself. `events` is its log without what was void; `dropped` counts the answers
    that were. `asked` is, for each turn, what is kept of it.
    """

    run: StoredRun
    found: Sequence[Message]
    added: Sequence[Message] | None
    past: Past
    events: Sequence[EngineEvent]
    dropped: int
    prompts: Sequence[RecordedPrompt | None]

    @property
    def is_whole(self) -> bool:
        """Whether the log goes to the end; where a process died, or was told to stop, it may not."""
        return bool(self.events) and is_end(self.events[-1])

    def turn(self, step: int) -> StoredTurn | None:
        """Return an answer of the model, `None` behind the last."""
        return self.past.turns[step] if step < len(self.past.turns) else None

    def calls_of(self, step: int) -> list[StoredCall]:
        """Return the calls of a turn."""
        return [call for call in self.past.calls if call.step == step]

    def pieces(self, step: int) -> list[Piece]:
        """Return the pieces in which an answer was told; behind the last one, those that led to no turn."""
        found: list[list[Piece]] = [[]]
        for event in self.events:
            match event:
                case TextDelta() | ReasoningDelta():
                    found[-1].append(event)
                case TurnNoted():
                    found.append([])
        if self.run.ending in _WITH_A_NOTE and found[-1]:
            del found[-1][-1]  # said by the loop, not by the model
        return found[step] if step < len(found) else []

    def finished_after(self, time: int) -> set[str]:
        """Return the calls whose answers were told after the run waited for the nth time, before the next."""
        times = itertools.accumulate(isinstance(event, RunSuspended) for event in self.events)
        return {
            event.id
            for waited, event in zip(times, self.events, strict=True)
            if waited == time and isinstance(event, CallFinished)
        }

    def finished(self) -> list[CallFinished]:
        """Return the answers of calls in the order in which they were told."""
        return [event for event in self.events if isinstance(event, CallFinished)]

    def late(self) -> frozenset[str]:
        """Return the ids of the calls whose answers came after the run had let go of everything.

        The log knows it better than their deadlines: where a process died, nobody may have let go.
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


async def read(store: Store, run: StoredRun) -> Recording:
    """Read a run; raise `StoreUnavailable`, and `ValueError` for a log that cannot be read."""
    past = await store.runs.past(run.id)
    events, dropped = _valid(await _log(store, run.id))
    whole = run.status in ("completed", "incomplete")
    return Recording(
        run=run,
        found=await store.runs.messages(run.id),
        added=await store.runs.added(run.id) if whole else None,
        past=past,
        events=events,
        dropped=dropped,
        prompts=await _prompts(store, past.turns),
    )


async def _log(store: Store, run_id: str) -> list[EngineEvent]:
    events: list[EngineEvent] = []
    while page := await store.events.after(run_id, len(events), most=_PAGE):
        events += [event_from_document(document) for _, document in page]
    return events


def _valid(log: Sequence[EngineEvent]) -> tuple[list[EngineEvent], int]:
    """Return a log as it would be if no process had died, and how many answers were begun in vain."""
    events: list[EngineEvent] = []
    dropped = 0
    for event in log:
        if isinstance(event, AnswerDropped):
            dropped += 1
            while events and isinstance(events[-1], TextDelta | ReasoningDelta):
                events.pop()
        elif not (isinstance(event, RunSuspended) and events and events[-1] == event):
            events.append(event)
    return events, dropped


async def _prompts(store: Store, turns: Sequence[StoredTurn]) -> list[RecordedPrompt | None]:
    noted = [turn.asked for turn in turns if turn.asked is not None]
    named = {digest for noted_prompt in noted for digest in (noted_prompt["system"], noted_prompt["tools"])}
    found = await store.materials.read(named)
    tools = await store.materials.read(
        digest for noted_prompt in noted for digest in found.get(noted_prompt["tools"], ())
    )
    return [_whole(turn.asked, found | tools) for turn in turns]


def _whole(noted_prompt: Mapping[str, Any] | None, materials: Mapping[str, Any]) -> RecordedPrompt | None:
    """Return what a turn was asked, `None` where not all of it is kept."""
    if noted_prompt is None:
        return None
    try:
        tools = [materials[digest] for digest in materials[noted_prompt["tools"]]]
        return RecordedPrompt(
            noted_prompt["model"], materials[noted_prompt["system"]], tools, noted_prompt.get("limit")
        )
    except KeyError:
        return None
