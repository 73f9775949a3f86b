"""The journal of a run that is stored."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from beckon_agent.calling.caller import AnswersLater
from beckon_agent.calling.exchange import Outcome
from beckon_agent.engine.asked import Archive, Asking
from beckon_agent.engine.recall import call_to_store, turn_to_store
from beckon_agent.journal import CallOfTurn
from beckon_agent.model.types import Turn
from beckon_agent.runs import CallFinished
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_agent.store.records import Exchanged, Said

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

_LOOK = 0.1
_LONGEST_LOOK = 1.0
_LONGEST_PAUSE = 5.0
_STORE_SECONDS = 600.0

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

    async def sending(self, call: CallOfTurn, *, seconds: float) -> None:
        """Store that a call is about to be made; one that is refused is not.

        Where the store does not answer, it is unknown whether it has that, but the call was not posted:
        so this is tried again until the store answers.
        """
        if not isinstance(call.prepared.way, Outcome):
            sent = partial(self._journal.sent, self._run_id, self._holder, call.event_id, seconds=seconds)
            await _until_stored(sent)

    async def reply(self, call: CallOfTurn) -> CallFinished | None:
        """Wait until the reply of a call is stored, by the replica that takes late replies, or overdue."""
        pause = _LOOK
        while (found := await self._journal.due(call.event_id)) is not None:
            stored, left = found
            if stored.state == "done":
                seconds, tokens = stored.seconds or 0.0, stored.tokens
                return CallFinished(stored.id, stored.name, stored.result, stored.failed, seconds, tokens)
            if stored.state == "accepted":
                raise AnswersLater
            if left <= 0:
                return None
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, _LONGEST_LOOK)
        return None

    async def accepted(self, call: CallOfTurn, *, seconds: float) -> None:
        """Store that the answer of a call comes later; where it has come already, that stays."""
        await self._journal.accepted(
            self._run_id, self._holder, call.event_id, seconds=seconds, exchanged=_exchanged(call)
        )
        _confirm(call)

    async def finished(self, call: CallOfTurn) -> None:
        """Store the result of a call; where it had one already, take that: a late reply may be earlier."""
        answer = call.finished
        if answer is None:
            return
        first = await _until_stored(
            partial(
                self._journal.finish,
                call.event_id,
                result=answer.result,
                failed=answer.failed,
                seconds=answer.seconds,
                tokens=answer.tokens,
                exchanged=_exchanged(call),
            )
        )
        if not first and (found := await self._journal.call(call.event_id)) is not None:
            stored = found[1]
            call.finished = replace(answer, result=stored.result, failed=stored.failed, tokens=stored.tokens)
        _confirm(call)


async def _until_stored(step: Callable[[], Awaitable[Result]]) -> Result:
    """Make a step of the store that may be made twice, again and again while the store does not answer.

    What it stores is known to this process alone: after a restart the call would have to be posted again,
    or end without its result. Raises `StoreUnavailable` after ten minutes.
    """
    gives_up, pause = time.monotonic() + _STORE_SECONDS, _LOOK
    while True:
        try:
            return await step()
        except StoreUnavailable as error:
            if time.monotonic() + pause > gives_up:
                raise
            logger.warning("the store does not answer, tried again in %.2g s: %s", pause, error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _confirm(call: CallOfTurn) -> None:
    """Tell who passed the reply of a call on that it is stored."""
    if call.noted is not None and call.noted.confirm is not None:
        call.noted.confirm()


def _exchanged(call: CallOfTurn) -> Exchanged | None:
    return None if call.noted is None else call.noted.stored(call.event_id, call.prepared.asked.name)
