"""What a face starts: a replay, from the question whether it may be to the report."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass

from beckon_agent.replay.comparing import compare
from beckon_agent.replay.differences import Difference
from beckon_agent.replay.live import LiveCall, LiveTools, with_effects
from beckon_agent.replay.playing import Played, play
from beckon_agent.replay.recording import Recording, read
from beckon_agent.request_id import request_id
from beckon_agent.roster import Hosted
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_agent.store.records import FINAL, StoredRun

logger = logging.getLogger(__name__)

_PATIENCE = 60.0  # seconds beyond those that the tools may take


class CannotReplay(Exception):
    """This run cannot be played; `code` is a word for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class MayHaveEffects(CannotReplay):
    """Calls would be made that may do more than read, and nobody has said that they may."""

    def __init__(self, tools: Sequence[str]) -> None:
        names = ", ".join(tools)
        super().__init__(
            "may-have-effects",
            f"these tools are not declared read-only, and would be called for real: {names}; allow that with "
            "'effects', or declare those that only read with the annotation beckon.dev/read-only",
        )
        self.tools = tools


@dataclass(frozen=True, slots=True)
class Wish:
    """How a run is to be played: with its tools called for real, even those that may have effects."""

    live_tools: bool = False
    effects: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What came of a replay."""

    recording: Recording
    live: bool
    calls: Sequence[LiveCall]
    differences: Sequence[Difference]

    @property
    def same(self) -> bool:
        """Whether nothing differs, byte for byte."""
        return not self.differences and all(call.same for call in self.calls)

    @property
    def unknown(self) -> int:
        """For how many answers nobody kept what the model was asked."""
        return sum(asked is None for asked in self.recording.asked)


class Replayer:
    """Plays the runs of a store with the agents of a service."""

    def __init__(self, store: Store, service: Service) -> None:
        self._store = store
        self._service = service

    async def prepared(self, run: StoredRun, wish: Wish, hosted: Hosted) -> Recording:
        """Return a run to be played; raise `CannotReplay` where it cannot, or may not."""
        if run.status not in FINAL:
            raise CannotReplay("not-ended", f"the run is {run.status}; it can be replayed when it has ended")
        try:
            recording = await read(self._store, run)
        except (KeyError, ValueError):
            message = "what is stored of this run is of another version of Beckon, and cannot be read"
            raise CannotReplay("unreadable", message) from None
        if wish.live_tools and not wish.effects:
            tools = with_effects(recording, hosted.catalogue.current.tools)
            if tools:
                raise MayHaveEffects(tools)
        return recording

    async def replay(
        self, recording: Recording, wish: Wish, hosted: Hosted
    ) -> AsyncGenerator[LiveCall | Report]:
        """Yield each call that was made for real, and the report; raise `NoRoom` and `CannotReplay`."""
        told: asyncio.Queue[LiveCall | None] = asyncio.Queue()
        live = None
        if wish.live_tools:
            live = LiveTools(self._service, hosted, told.put_nowait, effects=wish.effects)
            logger.info(
                "request %s: run %s is replayed with live tools, %s effects",
                request_id(),
                recording.run.id,
                "with" if wish.effects else "without",
            )
        calls: list[LiveCall] = []
        with self._service.place(), hosted.held():
            playing = asyncio.create_task(self._played(recording, hosted, live))
            playing.add_done_callback(lambda _: told.put_nowait(None))
            try:
                while (call := await told.get()) is not None:
                    calls.append(call)
                    yield call
                yield _report(recording, playing.result(), wish, calls)
            finally:
                playing.cancel()
                await asyncio.gather(playing, return_exceptions=True)

    async def _played(self, recording: Recording, hosted: Hosted, live: LiveTools | None) -> Played:
        seconds = _PATIENCE + (hosted.agent.limits.seconds if live else 0.0)
        store = await self._store.scratch()
        try:
            async with asyncio.timeout(seconds):
                return await play(recording, hosted, store, live)
        except TimeoutError:
            raise CannotReplay("no-end", f"the replay did not come to its end within {seconds:g} s") from None
        finally:
            await store.aclose()


def _report(recording: Recording, played: Played, wish: Wish, calls: Sequence[LiveCall]) -> Report:
    """Compare; where the model was asked something else and that ended it, that is all to say."""
    differences = [] if played.asked is None else [played.asked]
    if played.asked is None or wish.live_tools:
        differences += compare(recording, played.recording)
    return Report(recording, wish.live_tools, calls, differences)
