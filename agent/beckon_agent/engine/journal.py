"""The journal of a run that is stored."""

from collections.abc import Sequence

from beckon_agent.engine.asked import Archive, Asking
from beckon_agent.engine.recall import call_to_store, turn_to_store
from beckon_agent.exchange import Outcome
from beckon_agent.journal import CallOfTurn
from beckon_agent.model.types import Turn
from beckon_agent.store.base import Store


class StoredJournal:
    """Notes the steps of one run for its holder; raises `NotHeld` once another process has it."""

    def __init__(self, store: Store, run_id: str, holder: str, archive: Archive, asking: Asking) -> None:
        self._journal = store.journal
        self._run_id = run_id
        self._holder = holder
        self._archive = archive
        self._asking = asking

    async def turn(self, step: int, turn: Turn, calls: Sequence[CallOfTurn]) -> None:
        """Store an answer of the model with its calls, and what the model was asked."""
        stored = [call_to_store(step, number, call) for number, call in enumerate(calls)]
        asked = None if self._asking.last is None else await self._archive.note(self._asking.last)
        await self._journal.add_turn(self._run_id, self._holder, turn_to_store(step, turn, asked), stored)

    async def sending(self, call: CallOfTurn) -> None:
        """Store that a call is about to be made; one that is refused is not."""
        if not isinstance(call.prepared.way, Outcome):
            await self._journal.sent(self._run_id, self._holder, call.event_id)

    async def finished(self, call: CallOfTurn) -> None:
        """Store the result of a call."""
        answer = call.finished
        if answer is not None:
            await self._journal.finish(
                call.event_id, result=answer.result, failed=answer.failed, seconds=answer.seconds
            )
