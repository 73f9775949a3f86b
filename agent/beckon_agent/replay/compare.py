"""Comparing two recordings of one run, and the order of their events."""

import asyncio
import difflib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Final, NoReturn

from beckon_agent.core.records import StoredCall
from beckon_agent.core.run_events import CallFinished, RunEvent
from beckon_agent.durable.base import event_to_document
from beckon_agent.replay.recording import Recording
from beckon_agent.store.base import Store

_NOT_NOW = ("approval", "accepted", "client")


class RecordedOrder:
    """Keeps the answers of parallel calls in their recorded order."""

    def __init__(self, recording: Recording, store: Store) -> None:
        self._recording = recording
        self._store = store
        self._published: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._places = {call.id: place for place, call in enumerate(recording.finished_calls())}

    def note_event(self, event: RunEvent) -> None:
        """Note an event published by the replayed run."""
        if isinstance(event, CallFinished):
            self._published[event.id].set()

    async def turn_of(self, call: StoredCall) -> None:
        """Wait until the answers recorded before this call's are published."""
        last = len(self._places)
        mine = self._places.get(call.id, last)
        waiting = await self._calls_not_made(call.step)
        for other in self._recording.calls_of(call.step):
            if self._places.get(other.id, last) < mine and other.event_id not in waiting:
                await self._published[other.id].wait()

    async def _calls_not_made(self, step: int) -> set[str]:
        """Return the event ids of calls not made in this part of the replay.

        The recorded state of these calls does not matter.
        """
        past = await self._store.runs.load_past(self._recording.run.id)
        return {call.event_id for call in past.calls if call.step == step and call.state in _NOT_NOW}


class End:
    """The end of the recording; the replay waits there to be stopped."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.other_prompt: Difference | None = None
        """The first difference between a prompt and the recorded one."""

    async def wait_to_be_stopped(self) -> NoReturn:
        """Signal the end of the recording, and wait to be stopped."""
        self.reached.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError("a future without a result has ended")


_MOST_LINES = 2_000
_LONGEST_LINE = 2_000  # characters
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: its path, of names and indexes, and a unified diff."""

    where: str
    diff: str


def first_difference(where: str, recorded: object, replayed: object) -> Difference | None:
    """Return the first difference of two JSON values, or `None`. `None` means the same byte for byte."""
    if _json_text(recorded) == _json_text(replayed):
        return None
    match recorded, replayed:
        case Mapping(), Mapping():
            # In the order of what was recorded, and then what is new.
            pairs = [
                (f"{where}.{name}", recorded.get(name, _MISSING), replayed.get(name, _MISSING))
                for name in dict.fromkeys([*recorded, *replayed])
            ]
        case list(), list():
            both = zip_longest(recorded, replayed, fillvalue=_MISSING)
            pairs = [(f"{where}[{index}]", old, new) for index, (old, new) in enumerate(both)]
        case _:
            return Difference(where, unified_diff(recorded, replayed))
    for place, old, new in pairs:
        if (old is _MISSING) != (new is _MISSING):
            return Difference(place, unified_diff(old, new))
        if difference := first_difference(place, old, new):
            return difference
    return Difference(where, "the same members, in another order")


def unified_diff(recorded: object, replayed: object) -> str:
    """Return a unified diff of two JSON values, formatted for people.

    Long values are compared by their beginning only.
    """
    lines = difflib.unified_diff(_json_lines(recorded), _json_lines(replayed), "recorded", "now", lineterm="")
    return "\n".join(lines)


def same_json(recorded: object, replayed: object) -> bool:
    """Return True if two JSON values are the same byte for byte."""
    return _json_text(recorded) == _json_text(replayed)


def _json_lines(value: object) -> Sequence[str]:
    if value is _MISSING:
        return ()
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    lines = text.splitlines() or [""]
    shown = [
        line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…" for line in lines[:_MOST_LINES]
    ]
    return shown if len(lines) <= _MOST_LINES else [*shown, f"… {len(lines) - _MOST_LINES} lines more"]


def _json_text(value: object) -> str | None:
    return None if value is _MISSING else json.dumps(value)


# A replay takes its own time, and sends nothing.
_NOT_OF_TURNS = frozenset({"written", "prompt", "seconds", "ended_at"})
_TIMES = frozenset({"sent_at", "finished_at", "decided_at", "attempts", "deliveries", "deadline", "due"})
_NOT_OF_CALLS = _TIMES | {"event_id", "state"}


def compare_recordings(recorded: Recording, played: Recording) -> list[Difference]:
    """Return the first difference of each kind between two recordings.

    The kinds are the log, the answer, the turns, the calls and the ending. If the log breaks off because the
    run was cancelled, only the logged part is compared.
    """
    old, new = ([event_to_document(event) for event in one.events] for one in (recorded, played))
    differences = [
        first_difference("events", old, new if recorded.is_whole else new[: len(old)]),
        None if recorded.added is None else first_difference("answer", recorded.added, played.added),
        first_difference("turns", *_compare_turns(recorded, played)),
        first_difference("calls", *_compare_calls(recorded, played)),
        first_difference("run", _end_document(recorded), _end_document(played)),
    ]
    return [difference for difference in differences if difference is not None]


def _compare_turns(*recordings: Recording) -> list[object]:
    return [
        [
            {name: value for name, value in asdict(turn).items() if name not in _NOT_OF_TURNS}
            for turn in recording.past.turns
        ]
        for recording in recordings
    ]


def _compare_calls(recorded: Recording, played: Recording) -> list[object]:
    """Return the answered calls of both recordings for the comparison.

    They are the calls answered in either recording if the run ended, and otherwise those answered in both.
    """
    done = [{call.event_id for call in one.past.calls if call.state == "done"} for one in (recorded, played)]
    shown = done[0] | done[1] if recorded.is_whole else done[0] & done[1]
    return [
        {call.event_id: _call_document(call) for call in one.past.calls if call.event_id in shown}
        for one in (recorded, played)
    ]


def _call_document(call: StoredCall) -> dict[str, object]:
    return {name: value for name, value in asdict(call).items() if name not in _NOT_OF_CALLS}


def _end_document(recording: Recording) -> dict[str, object]:
    run = recording.run
    usage = asdict(run.usage) if run.usage else None
    return {"status": run.status, "ending": run.ending, "usage": usage, "error": run.error}
