"""The order in which things happened, and the end of what is known."""

import asyncio
from collections import defaultdict
from typing import NoReturn

from beckon_agent.engine.base import EngineEvent
from beckon_agent.replay.differences import Difference
from beckon_agent.replay.recording import Recording
from beckon_agent.runs import CallFinished
from beckon_agent.store.base import Store
from beckon_agent.store.records import StoredCall

_NOT_NOW = ("approval", "accepted", "client")


class Order:
    """Lets the answers of calls that were made side by side come in the order in which they came then."""

    def __init__(self, recording: Recording, store: Store) -> None:
        self._recording = recording
        self._store = store
        self._told: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._places = {call.id: place for place, call in enumerate(recording.finished())}

    def told(self, event: EngineEvent) -> None:
        """Take note of what the replayed run has told."""
        if isinstance(event, CallFinished):
            self._told[event.id].set()

    async def turn_of(self, call: StoredCall) -> None:
        """Wait until every answer was told that came before the answer of this call."""
        last = len(self._places)
        mine = self._places.get(call.id, last)
        waiting = await self._waiting(call.step)
        for other in self._recording.calls_of(call.step):
            if self._places.get(other.id, last) < mine and other.event_id not in waiting:
                await self._told[other.id].wait()

    async def _waiting(self, step: int) -> set[str]:
        """Return the calls that are not made in this leg of the replay, whatever they were then."""
        past = await self._store.runs.past(self._recording.run.id)
        return {call.event_id for call in past.calls if call.step == step and call.state in _NOT_NOW}


class End:
    """The end of what is known: who comes to it stays there, until the replay is stopped."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.asked: Difference | None = None
        """Where the model was asked something else than it was then."""

    async def stay(self) -> NoReturn:
        """Say that nothing more is known, and wait to be stopped."""
        self.reached.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("nobody answers that")
