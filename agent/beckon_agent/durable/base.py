"""The interface of the durable engine: start a run, follow it, decide, cancel.

The options and the principal of a run are stored as JSON; both directions are here.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from pydantic import TypeAdapter

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.records import Decision, NewRun, StoredRun
from beckon_agent.core.run_events import STORED_EVENTS, RunEvent, TextDelta
from beckon_agent.core.run_types import ClientTool, Options
from beckon_contract.inputs import InputRequest


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of a face to run an agent."""

    run: NewRun
    hosted: AgentHandle
    options: Options
    client_tools: Sequence[ClientTool] = ()


OwesAnswer = Callable[[StoredRun], bool]
"""Returns True if the caller of a run gets its answer after a suspension in a message of its own."""


class Engine(Protocol):
    """The runs of all faces."""

    async def start(self, ask: Ask) -> StoredRun:
        """Store and begin a run.

        Raises `NoRoom`, `KeyError` for a `previous` that does not exist, and `RunExists` if the id is taken.
        """
        ...

    def follow(self, run_id: str, *, wait: bool = False) -> AsyncGenerator[tuple[int, RunEvent]]:
        """Yield all events from the first on, with their numbers.

        Past events come first, then new ones. The numbers are 1, 2, …. Closing it early cancels a run that is
        not in the background. With `wait` it goes on after `RunSuspended` until the run is resumed.
        """
        ...

    async def get(self, run_id: str) -> StoredRun | None:
        """Return a run as it is now."""
        ...

    async def cancel(self, run_id: str) -> StoredRun | None:
        """Cancel a run unless it has ended; return its state then."""
        ...

    async def delete(self, run_id: str) -> bool:
        """Cancel and delete a run; return True if it existed."""
        ...

    async def decide_call(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        """Decide once on a call with a pending approval. Return True for the first decision."""
        ...

    async def answer_input(self, event_id: str, filled: InputRequest) -> bool:
        """Store the answers to what the tool of a call requests; return True for the first ones.

        The tool gets them once nothing of the request is left without an answer.
        """
        ...


@cache
def _adapter(name: str) -> TypeAdapter[RunEvent]:
    return TypeAdapter(STORED_EVENTS[name])


def event_to_document(event: RunEvent) -> dict[str, object]:
    """Return an event as a JSON object of its fields. The member `type` is its stored name."""
    name = event.stored_name
    if type(event) is TextDelta and not event.logprobs:  # most events of a log
        return {"type": name, "text": event.text}
    return {"type": name, **_adapter(name).dump_python(event, mode="json")}


def event_from_document(document: Mapping[str, object]) -> RunEvent:
    """Return the event of a document. Raises `KeyError` or `ValueError` for any other document."""
    fields = {name: value for name, value in document.items() if name != "type"}
    return _adapter(str(document["type"])).validate_python(fields)


_OPTIONS = TypeAdapter(Options)


def options_to_request(options: Options) -> dict[str, object]:
    """Return the options as a part of a run's request."""
    return {"options": _OPTIONS.dump_python(options, mode="json")}


def options_from_request(request: Mapping[str, object]) -> Options:
    """Return the options of a run's request, the default ones without any."""
    return _OPTIONS.validate_python(request.get("options") or {})
