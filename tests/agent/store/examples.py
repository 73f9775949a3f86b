"""Runs, turns and calls as tests need them."""

from typing import Any

from beckon_agent.core.model_types import AnswerDetails, Message, Usage
from beckon_agent.core.records import CallState, Ended, NewRun, StoredCall, StoredRun, StoredTurn
from beckon_agent.store.base import Store

ME = "replica-a"
OTHER = "replica-b"
LONG = 60.0


def said(text: str) -> Message:
    return {"role": "user", "content": text}


def answered(text: str) -> Message:
    return {"role": "assistant", "content": text}


def new_run(run_id: str, **members: Any) -> NewRun:
    usual = {"owner": "ann", "agent": "beckon", "face": "responses", "input": [said(f"ask {run_id}")]}
    return NewRun(id=run_id, **usual | members)


async def begun(store: Store, run_id: str, *, seconds: float = LONG, **members: Any) -> StoredRun:
    """A run that `ME` works on."""
    return await store.runs.create(new_run(run_id, **members), holder=ME, seconds=seconds)


async def ended(store: Store, run_id: str, **members: Any) -> None:
    """A run from its beginning to its end; its answer is named after it."""
    await begun(store, run_id, **members)
    await store.runs.end_run(run_id, ME, Ended("completed", "stop", added=[answered(f"done {run_id}")]))


def turn(step: int = 0, **members: Any) -> StoredTurn:
    usual: dict[str, Any] = {
        "text": "Let me see.",
        "usage": Usage(10, 2, {"cached_tokens": 4}),
        "details": AnswerDetails(logprobs=({"token": "Let", "logprob": -0.5},), fingerprint="fp_1"),
    }
    return StoredTurn(step=step, **usual | members)


def call(event_id: str, number: int = 0, state: CallState = "open", **members: Any) -> StoredCall:
    usual: dict[str, Any] = {"step": 0, "id": f"id-{number}", "name": "add", "arguments": {"a": 1}}
    return StoredCall(event_id=event_id, number=number, state=state, **usual | members)


async def called(store: Store, run_id: str, *calls: StoredCall) -> None:
    """A run whose first turn made these calls."""
    await begun(store, run_id)
    await store.journal.add_turn(run_id, ME, turn(), calls)
