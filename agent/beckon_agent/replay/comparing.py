"""Two recordings of one run side by side."""

from dataclasses import asdict

from beckon_agent.engine.codec import to_log
from beckon_agent.replay.differences import Difference, first_difference
from beckon_agent.replay.recording import Recording
from beckon_agent.store.records import StoredCall

# A replay takes its own time, and sends nothing.
_NOT_OF_TURNS = frozenset({"written", "asked", "seconds", "ended_at"})
_TIMES = frozenset({"sent_at", "finished_at", "decided_at", "attempts", "deliveries", "deadline", "due"})
_NOT_OF_CALLS = _TIMES | {"event_id", "state"}


def compare(recorded: Recording, played: Recording) -> list[Difference]:
    """Return the first difference of each kind: in the log, the answer, the calls, the turns, the ending.

    Of a run whose log breaks off, because it was cancelled, what the log has is compared.
    """
    old, new = ([to_log(event) for event in one.events] for one in (recorded, played))
    found = [
        first_difference("events", old, new if recorded.is_whole else new[: len(old)]),
        None if recorded.added is None else first_difference("answer", recorded.added, played.added),
        first_difference("turns", *_turns(recorded, played)),
        first_difference("calls", *_calls(recorded, played)),
        first_difference("run", _ending(recorded), _ending(played)),
    ]
    return [difference for difference in found if difference is not None]


def _turns(*recordings: Recording) -> list[object]:
    return [
        [
            {name: value for name, value in asdict(turn).items() if name not in _NOT_OF_TURNS}
            for turn in recording.past.turns
        ]
        for recording in recordings
    ]


def _calls(recorded: Recording, played: Recording) -> list[object]:
    """Return the calls that have an answer in both, or in either where the run came to its end."""
    done = [{call.event_id for call in one.past.calls if call.state == "done"} for one in (recorded, played)]
    shown = done[0] | done[1] if recorded.is_whole else done[0] & done[1]
    return [
        {call.event_id: _call(call) for call in one.past.calls if call.event_id in shown}
        for one in (recorded, played)
    ]


def _call(call: StoredCall) -> dict[str, object]:
    return {name: value for name, value in asdict(call).items() if name not in _NOT_OF_CALLS}


def _ending(recording: Recording) -> dict[str, object]:
    run = recording.run
    usage = asdict(run.usage) if run.usage else None
    return {"status": run.status, "ending": run.ending, "usage": usage, "error": run.error}
