"""Replies that no connection waited for: each finishes its call, once, and lets its run go on."""

from collections.abc import Callable
from enum import Enum, auto

from beckon_agent.calling.exchange import Outcome
from beckon_agent.calling.exchanged import document_of
from beckon_agent.calling.reports import Report
from beckon_agent.principals import acting_as, kept
from beckon_agent.roster import Hosted, Roster
from beckon_agent.runs import Limits
from beckon_agent.store.base import Store
from beckon_agent.store.records import Exchanged
from beckon_contract.events import CloudEvent


class Became(Enum):
    """What became of a late reply."""

    TAKEN = auto()
    REPORTED = auto()
    REPEATED = auto()
    UNKNOWN = auto()


class LateReplies:
    """Puts late replies where their runs find them; every method may raise `StoreUnavailable`."""

    def __init__(self, store: Store, roster: Roster, look: Callable[[], None]) -> None:
        """`look` lets this process look for runs that can go on."""
        self._store = store
        self._roster = roster
        self._look = look

    async def answered(self, event_id: str, outcome: Outcome, reply: CloudEvent) -> Became:
        """Take the answer of a call; whoever made it may be dead by now, or still wait."""
        found = await self._store.journal.call(event_id)
        if found is None:
            return Became.UNKNOWN
        exchanged = Exchanged(event_id, found[1].name, reply=document_of(reply))
        first = await self._store.journal.finish(
            event_id,
            result=outcome.result,
            failed=outcome.failed,
            seconds=None,
            tokens=outcome.tokens,
            exchanged=exchanged,
        )
        self._look()
        return Became.TAKEN if first else Became.REPEATED

    async def accepted(self, event_id: str) -> Became:
        """Take note that a tool has a call whose caller did not hear of it, so that it is not sent again."""
        found = await self._store.journal.call(event_id)
        if found is None:
            return Became.UNKNOWN
        run_id, call = found
        if call.state != "sent":
            return Became.REPEATED
        seconds = await self._patience(run_id, call.name)
        await self._store.journal.accepted(run_id, None, event_id, seconds=seconds)
        return Became.TAKEN

    async def reported(self, event_id: str, report: Report) -> Became:
        """Keep how far a call is whose answer comes later."""
        document = {"progress": report.done, "total": report.total, "message": report.message}
        stored = await self._store.journal.reported(event_id, document)
        return Became.REPORTED if stored else Became.UNKNOWN

    async def _patience(self, run_id: str, name: str) -> float:
        """Return the seconds for which a run waits for the answer of a tool."""
        run = await self._store.runs.get(run_id)
        if run is None:
            return Limits().late_seconds
        with acting_as(kept(run.request)):
            hosted = self._roster.find(run.agent)
        if not isinstance(hosted, Hosted):
            return Limits().late_seconds
        tool = hosted.catalogue.current.tools.get(name)
        return (tool.timeout if tool is not None else None) or hosted.agent.limits.late_seconds
