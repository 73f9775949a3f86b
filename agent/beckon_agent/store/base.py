"""The store as its users see it; `sql` is what implements it.

Every method may raise `StoreUnavailable`. Methods that name a `holder` raise `NotHeld` where the run is
held by somebody else by now, and change nothing then: a process that slept too long does no harm.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from beckon_agent.core.model_types import Message
from beckon_agent.core.records import (
    ConversationSummary,
    Decision,
    Ended,
    Exchanged,
    LimitDecision,
    LogEntries,
    NewRun,
    Past,
    ReservedLimit,
    RunFilter,
    RunStatus,
    RunSummary,
    StoredCall,
    StoredConversation,
    StoredRun,
    StoredTurn,
    Waiting,
)

NOTHING = LogEntries()


class StoreUnavailable(Exception):
    """The database does not answer, or not in time; nothing was changed, or nobody can tell."""


class StoreRefused(Exception):
    """The database cannot be used by this process; the message says why, and what to do."""


class NotHeld(Exception):
    """Another process works on this run by now, or the run is deleted or at its end."""


class RunExists(ValueError):
    """There is a run with this id already: the same request has come before."""


class Runs(Protocol):
    """Runs from their beginning to their end.

    Steps that take what was `said` before them store both or neither, in one transaction.
    """

    async def create(self, new: NewRun, *, holder: str | None, seconds: float) -> StoredRun:
        """Store a run: `running` and held for so long, or `queued` where `holder` is `None`.

        Raises `KeyError` with the id of a `previous` run or a `conversation` that does not exist, and
        `RunExists` where the id is taken. A run that is not kept cannot be followed.
        """
        ...

    async def get(self, run_id: str) -> StoredRun | None:
        """Return a run."""
        ...

    async def past(self, run_id: str) -> Past:
        """Return what a run has done so far; nothing for one that does not exist."""
        ...

    async def messages(self, run_id: str) -> list[Message]:
        """Return the conversation as a run found it: all that came before, and then its own input."""
        ...

    async def added(self, run_id: str) -> list[Message]:
        """Return what a run has added behind its input; nothing before it has come to an end by itself."""
        ...

    async def delete(self, run_id: str) -> bool:
        """Delete a run with all that is kept of it; return whether there was one.

        Runs that follow it keep what they need of the conversation.
        """
        ...

    async def claim(self, holder: str, *, seconds: float, most: int) -> list[StoredRun]:
        """Take over runs that are queued, or whose holder has let its time run out; the oldest first.

        Of the latter a holder is counted as lost, until the next step of the run is noted.
        """
        ...

    async def renew(
        self, holder: str, *, seconds: float, only: Collection[str] | None = None
    ) -> frozenset[str]:
        """Hold the runs of this holder for so long from now; return the ids of those that it still has.

        `only` are those that it works on: others of its name are nobody's, and their time runs out.
        """
        ...

    async def release(self, holder: str, *, seconds: float, only: Collection[str] | None = None) -> None:
        """Let go of runs of this holder, all or some, for others to claim when so long has passed.

        Who does this is not lost, and its runs are not worked on in the meantime.
        """
        ...

    async def suspend(self, run_id: str, holder: str, said: LogEntries = NOTHING) -> RunStatus:
        """Let go of a run that waits; `queued` where what it waits for has come in the meantime."""
        ...

    async def end(self, run_id: str, holder: str | None, ended: Ended, said: LogEntries = NOTHING) -> bool:
        """Give a run its final status; return whether it was without one.

        With `holder` `None` whoever holds it loses it: so a run is cancelled, and says nothing any more.
        """
        ...

    async def purge(self, keep_seconds: float | None) -> int:
        """Delete all runs that ended so long ago, none for `None`; return how many.

        Limits that ran out go too.

        So do runs that are not kept, and ended a minute ago or longer.
        """
        ...


class Journal(Protocol):
    """The steps of runs. Each is stored before its effect is relied on."""

    async def add_turn(
        self,
        run_id: str,
        holder: str,
        turn: StoredTurn,
        calls: Sequence[StoredCall],
        said: LogEntries = NOTHING,
    ) -> None:
        """Store an answer of the model with its calls, behind what was said, all or nothing."""
        ...

    async def sent(self, run_id: str, holder: str, event_id: str, *, seconds: float = 0.0) -> None:
        """Note that a call is about to be sent, and that its reply is due in so many seconds."""
        ...

    async def due(self, event_id: str) -> tuple[StoredCall, float] | None:
        """Return a call and the seconds until its reply is due, by the clock of the store."""
        ...

    async def accepted(
        self,
        run_id: str,
        holder: str | None,
        event_id: str,
        *,
        seconds: float,
        exchanged: Exchanged | None = None,
    ) -> None:
        """Note that the answer of a call that was sent will come later, by an event, within so many seconds.

        They are reckoned by the clock of the database: that of a replica may be wrong.
        With `holder` `None` it is not the process that made the call who says so, but the tool.
        """
        ...

    async def reported(self, event_id: str, report: Mapping[str, Any]) -> bool:
        """Keep the last report of a call that has no answer yet; return whether there is such a call."""
        ...

    async def reports(self, run_id: str) -> list[StoredCall]:
        """Return the calls of a run that have a report and no answer yet."""
        ...

    async def finish(
        self,
        event_id: str,
        *,
        result: object,
        failed: bool,
        seconds: float | None,
        tokens: int = 0,
        exchanged: Exchanged | None = None,
    ) -> bool:
        """Store the result of a call, and the events of both ways; return whether it was the first.

        Whoever brings it: the process that made the call, or one that took a late reply. A suspended
        run that waits for nothing more is queued.
        """
        ...

    async def decide(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        """Decide on a call that waits for approval; return whether nobody had before.

        A suspended run that waits for no more decisions is queued.
        """
        ...

    async def call(self, event_id: str) -> tuple[str, StoredCall] | None:
        """Return a call and the id of its run."""
        ...

    async def overdue(self, *, most: int) -> list[tuple[str, StoredCall]]:
        """Return accepted calls whose deadline is over, with the ids of their runs."""
        ...


class EventLog(Protocol):
    """What a run told its client, so that a broken stream can be resumed anywhere."""

    async def append(self, run_id: str, holder: str, said: LogEntries) -> None:
        """Store events; those whose numbers are there already stay as they are."""
        ...

    async def after(self, run_id: str, number: int, *, most: int) -> list[tuple[int, Mapping[str, object]]]:
        """Return the events behind a number, in their order."""
        ...


class Conversations(Protocol):
    """Threads that outlive their runs."""

    async def open(self, conversation: StoredConversation, messages: Sequence[Message]) -> None:
        """Store a new conversation that begins with these messages. Raises `ValueError` for a taken id."""
        ...

    async def find(self, conversation_id: str) -> StoredConversation | None:
        """Return a conversation."""
        ...

    async def update(self, conversation_id: str, metadata: Mapping[str, str]) -> bool:
        """Replace the metadata; return whether the conversation exists."""
        ...

    async def close(self, conversation_id: str) -> bool:
        """Delete a conversation; its runs stay. Return whether there was one."""
        ...

    async def read(self, conversation_id: str) -> list[Message]:
        """Return all messages: what it was opened with, and what each ended run added, in order."""
        ...


class History(Protocol):
    """What people look through: lists of what an owner has, the newest first, and what went back and forth.

    `after` is the id of the last one of the page before; `KeyError` where this owner has nothing of that id.
    Of a conversation it is better its `place`, which stays when the conversation is used again or deleted.
    """

    async def runs(self, owner: str, wanted: RunFilter, *, after: str | None, most: int) -> list[RunSummary]:
        """Return runs that are kept."""
        ...

    async def conversations(
        self, owner: str, *, query: str, after: str | None, most: int
    ) -> list[ConversationSummary]:
        """Return conversations; with a `query` those in which a question or an answer has these words."""
        ...

    async def waiting(self, owner: str, *, after: str | None, most: int) -> list[Waiting]:
        """Return the calls that wait for a person, the oldest run first; `after` is an event id."""
        ...

    async def exchanged(self, run_id: str, *, after: str | None, most: int) -> list[Exchanged]:
        """Return what went back and forth for the calls of a run, in their order; `after` is an event id."""
        ...


class Materials(Protocol):
    """Documents that many turns share: what models were told of tools, and of themselves."""

    async def keep(self, documents: Mapping[str, object]) -> None:
        """Store JSON documents under their digests; those that are there stay for longer.

        They are deleted some time after the last run that was under way when they were kept last; so
        whoever relies on one says so again every hour.
        """
        ...

    async def read(self, digests: Iterable[str]) -> dict[str, Any]:
        """Return those that are there."""
        ...


class Counters(Protocol):
    """What was used of limits, exact over all replicas."""

    async def take(self, key: str, amount: int, *, limit: int, window: float) -> LimitDecision:
        """Use so much of a limit per sliding window of so many seconds, all or nothing."""
        ...

    async def reserve(self, key: str, token: str, amount: int, limit: ReservedLimit) -> LimitDecision:
        """Set so much of a limit aside before it is used, wherever anything is left of it.

        A token that has a reservation keeps it, with this amount.
        """
        ...

    async def settle(self, key: str, token: str, amount: int, *, window: float) -> None:
        """Count what was used in place of the reservation, however much it is."""
        ...

    async def enter(self, key: str, token: str, *, limit: int, seconds: float) -> LimitDecision:
        """Take one of `limit` places for so long at most; a token that has one already keeps it anew."""
        ...

    async def leave(self, key: str, token: str) -> None:
        """Give the place back."""
        ...


class Store(Protocol):
    """Everything; open until `aclose`."""

    runs: Runs
    journal: Journal
    events: EventLog
    materials: Materials
    conversations: Conversations
    history: History
    counters: Counters

    async def scratch(self) -> "Store":
        """Return a new store in memory, for what is thrown away."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
