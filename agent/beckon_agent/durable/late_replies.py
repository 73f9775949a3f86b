"""Late replies: each finishes its call once and lets its run resume."""

from collections.abc import Callable
from enum import Enum, auto

from beckon_agent.agents.registry import AgentHandle, AgentRegistry
from beckon_agent.core.context import acting_as, principal_of
from beckon_agent.core.records import Exchanged
from beckon_agent.core.run_types import Limits
from beckon_agent.store.base import Store
from beckon_agent.tool_calls.outcome import CallOutcome
from beckon_agent.tool_calls.progress import ProgressReport
from beckon_agent.tool_calls.recorded_events import event_document
from beckon_contract.cloudevents.events import CloudEvent


class LateReplyResult(Enum):
    """The outcome of a late reply."""

    TAKEN = auto()
    REPORTED = auto()
    REPEATED = auto()
    UNKNOWN = auto()


class LateReplies:
    """Stores late replies for their runs.

    Every method may raise `StoreUnavailable`.
    """

    def __init__(self, store: Store, registry: AgentRegistry, look: Callable[[], None]) -> None:
        """`look` makes this process look for runs ready to continue."""
        self._store = store
        self._registry = registry
        self._look = look

    async def store_answer(self, event_id: str, outcome: CallOutcome, reply: CloudEvent) -> LateReplyResult:
        """Store the answer of a call.

        The process that made it may be dead by now, or still waiting.
        """
        found = await self._store.journal.find_call(event_id)
        if found is None:
            return LateReplyResult.UNKNOWN
        exchanged = Exchanged(event_id, found[1].name, reply=event_document(reply))
        first = await self._store.journal.finish_call(
            event_id,
            result=outcome.result,
            failed=outcome.failed,
            seconds=None,
            tokens=outcome.tokens,
            exchanged=exchanged,
        )
        self._look()
        return LateReplyResult.TAKEN if first else LateReplyResult.REPEATED

    async def store_acceptance(self, event_id: str) -> LateReplyResult:
        """Mark a call as accepted by its tool, to prevent another delivery.

        Its caller has not received the tool's own response.
        """
        found = await self._store.journal.find_call(event_id)
        if found is None:
            return LateReplyResult.UNKNOWN
        run_id, call = found
        if call.state != "sent":
            return LateReplyResult.REPEATED
        seconds = await self._seconds_to_wait(run_id, call.name)
        await self._store.journal.mark_accepted(run_id, None, event_id, seconds=seconds)
        return LateReplyResult.TAKEN

    async def store_report(self, event_id: str, report: ProgressReport) -> LateReplyResult:
        """Store the progress of a call to be answered later."""
        document = {"progress": report.done, "total": report.total, "message": report.message}
        stored = await self._store.journal.store_report(event_id, document)
        return LateReplyResult.REPORTED if stored else LateReplyResult.UNKNOWN

    async def _seconds_to_wait(self, run_id: str, name: str) -> float:
        """Return the seconds a run waits for the answer of a tool."""
        run = await self._store.runs.get(run_id)
        if run is None:
            return Limits().late_seconds
        with acting_as(principal_of(run.request)):
            hosted = self._registry.find(run.agent)
        if not isinstance(hosted, AgentHandle):
            return Limits().late_seconds
        tool = hosted.catalogue.current.tools.get(name)
        return (tool.timeout if tool is not None else None) or hosted.agent.limits.late_seconds
