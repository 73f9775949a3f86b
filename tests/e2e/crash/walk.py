"""One step of the walk: an agent is killed at a point of a run, and another one brings it to its end."""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from beckon_agent.store import base
from tests.agent.responses.running_face import Event, said
from tests.agent.store.raw import execute
from tests.e2e.crash.agents import SECONDS, AgentProcess
from tests.e2e.crash.dying import Death
from tests.e2e.crash.gates import GATES, Gate
from tests.e2e.crash.parts import no_call_waits
from tests.e2e.crash.site import Site
from tests.e2e.crash.tools import CALLED, DONE, EFFECTS, HALF, PLACES, QUESTIONS, REQUEST, answer
from tests.patience import eventually

WITHIN = 15.0
"""Seconds after a kill, on a machine that is busy with other tests."""


@dataclass(frozen=True)
class Point:
    """Where an agent is killed: at a step of its own, or while others hold its requests at a gate.

    `again` is the turn whose answer was not stored there, so that the model gets the request again.
    """

    name: str
    death: Death | None = None
    place: str = ""
    requests: int = 1
    seen: str = ""
    again: int = 0

    def gate(self, run: str) -> Gate | None:
        """Put up the gate for a run."""
        return GATES.put(self.place, run, self.requests) if self.place else None


def step(name: str, nth: int = 1, *, again: int = 0) -> list[Point]:
    """Return the points right before and right after a step of the store, the `nth` of its kind."""
    assert any(name in vars(part) for part in vars(base).values() if isinstance(part, type)), name
    return [
        Point(f"before {name} {nth}", Death("before", name, nth), again=again),
        Point(f"after {name} {nth}", Death("after", name, nth)),
    ]


POINTS = [
    *step("create"),
    Point(f"{REQUEST} 1", place=f"{REQUEST} 1", again=1),
    Point(f"{HALF} 1", place=f"{HALF} 1", seen="Let me ", again=1),
    *step("add_turn", again=1),
    *step("mark_sent", 1),
    *step("mark_sent", 2),
    Point(CALLED, place=CALLED, requests=len(PLACES)),
    Point(DONE, place=DONE, requests=len(PLACES)),
    *step("finish_call", 1),
    *step("finish_call", 2),
    Point(f"{REQUEST} 2", place=f"{REQUEST} 2", again=2),
    Point(f"{HALF} 2", place=f"{HALF} 2", seen="They are ", again=2),
    *step("add_turn", 2, again=2),
    *step("end_run"),
]


@dataclass
class Walked:
    """A run whose agent is dead: its name, where it is stored, and when that was."""

    name: str
    store: str
    first: AgentProcess
    killed: float

    async def id(self) -> str | None:
        """Return the id of the run, as the database has it; `None` where it was not stored."""
        rows = await execute(self.store, f"SELECT id FROM runs WHERE {_of(self.name)}")
        assert len(rows) <= 1
        return str(rows[0][0]) if rows else None

    async def pass_the_time(self) -> None:
        """Let the lease of the dead agent run out."""
        await execute(
            self.store, f"UPDATE runs SET held_until = 0 WHERE {_of(self.name)} AND status = 'running'"
        )


async def killed_at(
    site: Site, point: Point, name: str, store: str, *, at_once: bool = True, **settings: str
) -> Walked:
    """Begin a run, and kill its agent at a point of it; unless `at_once`, its lease takes its time.

    Then the shim has noticed, too, before anything goes on: it has no other calls.
    """
    gate = point.gate(name)
    first = await site.agent(store, point.death, **settings)
    asking = asyncio.create_task(first.ask(name))
    if gate is not None:
        await asyncio.wait_for(gate.arrived.wait(), SECONDS)
        await eventually(lambda: asyncio.sleep(0, point.seen in _deltas(first.shown)), SECONDS)
        first.kill()
    await first.ended()
    walked = Walked(name, store, first, time.monotonic())
    if at_once:
        await walked.pass_the_time()
    else:
        await eventually(lambda: no_call_waits(site.parts.shim.url), SECONDS)
    if gate is not None:
        gate.open()
    await asking
    return walked


def _of(name: str) -> str:
    return f"request LIKE '%\"{name}\"%'"


def _deltas(events: list[Event]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "response.output_text.delta")


async def comes_right(walked: Walked, successor: AgentProcess, *, again: int = 0) -> float:
    """Hold the run to all that a client was promised; return the seconds from the kill to its end."""
    run_id = await walked.id()
    if run_id is None:  # the client has no id, and requests anew
        assert not walked.first.shown
        await successor.ask(walked.name)
        run_id = await walked.id()
        assert run_id is not None
    events = await successor.join(run_id)
    seconds = time.monotonic() - walked.killed
    shown = walked.first.shown
    rest = await successor.join(run_id, starting_after=shown[-1]["sequence_number"] if shown else -1)

    assert [*shown, *rest] == events
    assert events[-1]["type"] == "response.completed", events[-1]
    document = await successor.get(run_id)
    assert document == events[-1]["response"]
    _is_the_answer(document, walked.name)
    assert {place: EFFECTS[walked.name, place] for place in PLACES} == dict.fromkeys(PLACES, 1)
    assert [QUESTIONS[walked.name, turn] for turn in (1, 2)] == [1 + (again == 1), 1 + (again == 2)]
    await _is_stored_whole(walked.store, run_id)
    return seconds


def _is_the_answer(document: dict[str, Any], name: str) -> None:
    """Every item is there once, whole, and in its order."""
    items = document["output"]
    calls = [item for item in items if item["type"] == "mcp_call"]
    assert (document["status"], document["error"]) == ("completed", None)
    assert [item["type"] for item in items] == ["message", "mcp_call", "mcp_call", "message"]
    assert {item["status"] for item in items} == {"completed"}, items
    assert len({item["id"] for item in items}) == len(items)
    assert [json.loads(call["arguments"])["place"] for call in calls] == list(PLACES)
    assert [call["output"] for call in calls] == [f"{place} of {name}" for place in PLACES]
    assert said(document) == f"Let me see.\n\n{answer(name)}"


async def _is_stored_whole(store: str, run_id: str) -> None:
    """No step is open, no one holds the run, and its log has no gap."""
    statuses = await execute(store, f"SELECT status, holder FROM runs WHERE id = '{run_id}'")
    states = await execute(store, f"SELECT state, failed FROM calls WHERE run_id = '{run_id}'")
    numbers = await execute(store, f"SELECT number FROM events WHERE run_id = '{run_id}' ORDER BY number")
    assert statuses == [("completed", None)]
    assert [(state, bool(failed)) for state, failed in states] == [("done", False)] * len(PLACES)
    assert [number for (number,) in numbers] == list(range(1, len(numbers) + 1))
