"""What a run has told so far, from what the store keeps of it: for one that is not at its end yet."""

from collections.abc import Iterator, Sequence

from beckon_agent.core import json_values
from beckon_agent.core.model_types import ReasoningDelta, TextDelta
from beckon_agent.core.records import Past, StoredCall, StoredRun, StoredTurn
from beckon_agent.core.run_types import (
    ApprovalAsked,
    CallFinished,
    CallStarted,
    ClientCallAsked,
    RunSuspended,
)
from beckon_agent.durable.base import EngineEvent


def retold(run: StoredRun, past: Past) -> Iterator[EngineEvent]:
    """Yield the events of all whole turns, each text in one piece, in the order in which a run tells them."""
    spoke = False
    for turn in past.turns:
        yield from _said(turn, spoke=spoke)
        spoke = spoke or bool(turn.text)
        calls = [call for call in past.calls if call.step == turn.step]
        yield from _called(run, sorted(calls, key=lambda call: call.number))


def _said(turn: StoredTurn, *, spoke: bool) -> Iterator[EngineEvent]:
    if turn.reasoning:
        yield ReasoningDelta(turn.reasoning)
    if turn.text:
        yield TextDelta(("\n\n" if spoke else "") + turn.text)


def _called(run: StoredRun, calls: Sequence[StoredCall]) -> Iterator[EngineEvent]:
    asked = [call for call in calls if call.decision is not None or call.state == "approval"]
    others = [call for call in calls if call not in asked]
    for call in calls:
        if call.state == "client":
            yield ClientCallAsked(call.id, call.name, json_values.dumps(call.arguments))
        elif call in asked:
            yield ApprovalAsked(call.event_id, call.id, call.name, call.arguments, call.origin)
        else:
            yield CallStarted(call.id, call.name, call.arguments, call.origin)
    yield from (_finished(call) for call in others if call.state == "done")
    decided = all(call.decision is not None for call in asked)
    if asked and (decided or run.status == "suspended"):
        yield RunSuspended()
        for call in asked if decided else ():
            yield CallStarted(call.id, call.name, call.arguments, call.origin)
    yield from (_finished(call) for call in asked if call.state == "done")


def _finished(call: StoredCall) -> CallFinished:
    return CallFinished(call.id, call.name, call.result, call.failed, call.seconds or 0.0)
