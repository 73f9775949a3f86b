"""An engine with the results that a test gives it: for what a real one seldom does."""

from collections.abc import AsyncGenerator, Sequence

from beckon_agent.api.responses.documents import ECHO
from beckon_agent.api.responses.request import CreateRequest
from beckon_agent.core.records import Decision, RunStatus, StoredRun
from beckon_agent.core.run_events import RunEvent, RunSuspended
from beckon_agent.durable.base import Ask
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.inputs import InputRequest

RUN_ID = f"resp_{'a' * 32}"


def stored_run(
    status: RunStatus = "running", *, background: bool = False, ended_at: float | None = None
) -> StoredRun:
    """Return a run that says nothing more of itself."""
    return StoredRun(
        id=RUN_ID,
        owner="",
        agent="beckon",
        face="responses",
        input=[],
        request={ECHO: CreateRequest().to_echo()},
        background=background,
        status=status,
        created_at=1.0,
        ended_at=ended_at,
    )


class ScriptedEngine:
    """Has one run; `breaks` is whether the store goes away behind the last event."""

    def __init__(self, run: StoredRun, events: Sequence[RunEvent], *, breaks: bool = False) -> None:
        self.run = run
        self._events = events
        self._breaks = breaks

    async def start(self, ask: Ask) -> StoredRun:
        """Begin the one run."""
        return self.run

    async def follow(self, run_id: str, *, wait: bool = False) -> AsyncGenerator[tuple[int, RunEvent]]:
        """Tell the script; without `wait` up to where it waits."""
        for number, event in enumerate(self._events, start=1):
            yield number, event
            if isinstance(event, RunSuspended) and not wait:
                return
        if self._breaks:
            raise StoreUnavailable("no store")

    async def get(self, run_id: str) -> StoredRun | None:
        """Return the one run."""
        return self.run

    async def cancel(self, run_id: str) -> StoredRun | None:
        """Leave everything as it is."""
        return self.run

    async def delete(self, run_id: str) -> bool:
        """Keep it."""
        return False

    async def decide_call(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        """Take no decision."""
        return False

    async def answer_input(self, event_id: str, filled: InputRequest) -> bool:
        """Take no answer."""
        return False
