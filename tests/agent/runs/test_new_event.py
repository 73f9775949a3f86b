"""A new event of a run: a class and the code that yields it are enough, as docs/extend.md says."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from beckon_agent.core.run_events import STORED_EVENTS, RunEvent, run_event
from beckon_agent.durable.base import event_from_document, event_to_document
from beckon_agent.durable.event_log import EventNumbers
from beckon_agent.service import Service
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import kinds, said
from tests.agent.runs.test_run_stream import received_events, streamed
from tests.agent.scripted_model import says

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True, slots=True)
class PlanMade(RunEvent):
    """The first file of the event: its class, with its decorator in the fixture."""

    step: int
    names: tuple[str, ...]


PLAN = PlanMade(1, ("look", "answer"))


@pytest.fixture
def new_event(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let every run yield the new event first, twice: the second file of the event."""
    run_event("PlanMade", "plan", same_by="step")(PlanMade)
    run = Service.run_agent

    async def run_with_plan(*given: Any, **options: Any) -> AsyncGenerator[RunEvent]:
        yield PLAN
        yield PLAN  # as a resumed run would
        async with aclosing(run(*given, **options)) as events:
            async for event in events:
                yield event

    monkeypatch.setattr(Service, "run_agent", run_with_plan)
    yield
    del STORED_EVENTS["PlanMade"]


@pytest.mark.usefixtures("new_event")
async def test_it_is_stored_streamed_and_no_hindrance_to_any_api(start_face: StartFace) -> None:
    async with start_face(says("One."), says("Two."), says("Three.")) as face:
        response = await face.ask("go")
        events = received_events((await streamed(face, response["id"])).text)
        responses_events = await face.stream("go")
        chat = await face.agent.ask()
        stored = await face.store.events.read_after(response["id"], 0, most=10)

    plans = [(number, members) for number, name, members in events if name == "plan"]
    assert plans == [(1, {"type": "plan", "number": 1, "step": 1, "names": ["look", "answer"]})]
    assert event_from_document(stored[0][1]) == PLAN
    assert said(response) == "One."
    assert kinds(responses_events)[-1] == "completed"
    assert chat.text == "Three."


@pytest.mark.usefixtures("new_event")
async def test_it_is_the_same_by_the_field_that_its_class_names() -> None:
    first, again, other = (PlanMade(step, ()) for step in (1, 1, 2))
    numbers = EventNumbers()

    assert event_from_document(event_to_document(first)) == first
    assert [numbers.number_event(event) for event in (first, again, other)] == [1, None, 2]


async def test_two_events_with_one_stored_name_are_an_error() -> None:
    with pytest.raises(ValueError, match="two events are stored as TextDelta"):
        run_event("TextDelta", "other")(type("Other", (RunEvent,), {}))
