"""The journal of a run that is stored."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from beckon_agent.calling.exchange import Outcome
from beckon_agent.engine.asked import Archive, Asking
from beckon_agent.engine.recall import call_to_store, turn_to_store
from beckon_agent.journal import CallOfTurn
from beckon_agent.model.types import Turn
from beckon_agent.store.base import Store
from beckon_agent.store.records import Exchanged, Said

AfterWhatWasSaid = Callable[[Callable[[Said], Awaitable[None]]], Awaitable[None]]
"""Makes a step of the store with all that the run has told and that its log does not have yet."""


class StoredJournal:
    """Notes the steps of one run for its holder; raises `NotHeld` once another process has it."""

    def __init__(
        self,
        store: Store,
        run_id: str,
        holder: str,
        archive: Archive,
        asking: Asking,
        *,
        said: AfterWhatWasSaid,
    ) -> None:
        self._journal = store.journal
        self._run_id = run_id
        self._holder = holder
        self._archive = archive
        self._asking = asking
        self._after_what_was_said = said

    async def turn(self, step: int, turn: Turn, calls: Sequence[CallOfTurn]) -> None:
        """Store an answer of the model with its calls, what was said in it, and what the model was asked."""
        calls_to_store = [call_to_store(step, number, call) for number, call in enumerate(calls)]
        asked = None if self._asking.last is None else await self._archive.note(self._asking.last)
        stored = replace(turn_to_store(step, turn, asked), seconds=self._asking.seconds)
        await self._after_what_was_said(
            lambda said: self._journal.add_turn(self._run_id, self._holder, stored, calls_to_store, said)
        )

    async def sending(self, call: CallOfTurn) -> None:
        """Store that a call is about to be made; one that is refused is not."""
        if not isinstance(call.prepared.way, Outcome):
            await self._journal.sent(self._run_id, self._holder, call.event_id)

    async def accepted(self, call: CallOfTurn, *, seconds: float) -> None:
        """Store that the answer of a call comes later; where it has come already, that stays."""
        await self._journal.accepted(
            self._run_id, self._holder, call.event_id, seconds=seconds, exchanged=_exchanged(call)
        )

    async def finished(self, call: CallOfTurn) -> None:
        """Store the result of a call; where it had one already, take that: a late reply may be earlier."""
        answer = call.finished
        if answer is None:
            return
        first = await self._journal.finish(
            call.event_id,
            result=answer.result,
            failed=answer.failed,
            seconds=answer.seconds,
            tokens=answer.tokens,
            exchanged=_exchanged(call),
        )
        if not first and (found := await self._journal.call(call.event_id)) is not None:
            stored = found[1]
            call.finished = replace(answer, result=stored.result, failed=stored.failed, tokens=stored.tokens)


def _exchanged(call: CallOfTurn) -> Exchanged | None:
    return None if call.noted is None else call.noted.stored(call.event_id, call.prepared.asked.name)
