"""The interfaces of the store; `sql` implements them.

Every method may raise `StoreUnavailable`. Methods with a `run_id` and a `holder` raise `NotHeld` if another
process holds the run by now, and change nothing then: a process that slept too long does no harm.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from beckon_agent.core.model_types import Message
from beckon_agent.core.records import (
    ConversationSummary,
    Decision,
    Ended,
    Exchanged,
    LogEntries,
    NewRun,
    Past,
    PersonState,
    RunFilter,
    RunStatus,
    RunSummary,
    StoredCall,
    StoredConversation,
    StoredRun,
    StoredTurn,
    Waiting,
)
from beckon_agent.store.counters import Counters
from beckon_agent.store.feed import Feed
from beckon_agent.store.outgoing import OwedAnswers, PushTargets

NO_ENTRIES = LogEntries()


class StoreUnavailable(Exception):
    """The database does not answer, or not in time. Either nothing was changed, or the outcome is unknown."""


class StoreRefused(Exception):
    """This process cannot use the database; the message has reason and remedy."""


class NotHeld(Exception):
    """Another process works on this run, or it has ended or is deleted."""


class RunExists(ValueError):
    """A run with this id exists: the same request has come before."""


class Runs(Protocol):
    """Runs from their beginning to their end.

    Methods with a parameter `entries` store these events of the log in the transaction of their own change.
    """

    async def create(self, new: NewRun, *, holder: str | None, seconds: float) -> StoredRun:
        """Store a new run, `running` or `queued`.

        With a `holder` it is `running` and held for `seconds`; with `None` it is `queued`. Raises `KeyError`
        with the id of a `previous` run or a `conversation` that does not exist, and `RunExists` if the id is
        taken. A run that is not kept cannot be a `previous` run.
        """
        ...

    async def get(self, run_id: str) -> StoredRun | None:
        """Return a run."""
        ...

    async def load_past(self, run_id: str) -> Past:
        """Return all turns and calls of a run so far. Both are empty for a run that does not exist."""
        ...

    async def load_messages(self, run_id: str) -> list[Message]:
        """Return the conversation before a run, then the run's own input."""
        ...

    async def load_added_messages(self, run_id: str) -> list[Message]:
        """Return the messages added by a run after its input.

        The list is empty until the run has ended by itself.
        """
        ...

    async def delete(self, run_id: str) -> bool:
        """Delete a run and all its records; return True if it existed.

        Runs that follow it keep the part of the conversation that they need.
        """
        ...

    async def claim_runs(self, holder: str, *, seconds: float, most: int) -> list[StoredRun]:
        """Take over queued runs and runs with an expired lease.

        The oldest come first, at most `most`. A run with an expired lease counts its holder as lost until the
        next step of the run is noted.
        """
        ...

    async def renew_leases(
        self, holder: str, *, seconds: float, only: Collection[str] | None = None
    ) -> frozenset[str]:
        """Extend the holder's leases; return the ids of runs still held.

        They last for `seconds` from now. `only` are the runs in progress in this process; others run out.
        """
        ...

    async def release_runs(self, holder: str, *, seconds: float, only: Collection[str] | None = None) -> None:
        """Queue runs of this holder again, all or only some.

        Others may claim them after `seconds`. The holder counts as present, the time in between as no work.
        """
        ...

    async def suspend(
        self, run_id: str, holder: str, entries: LogEntries = NO_ENTRIES, *, forms: Collection[str] = ()
    ) -> RunStatus:
        """Suspend a waiting run, without a holder; return its new status.

        That is `queued` if what it waits for has come, or a form that is not in its log. `forms` are the
        event ids of the calls whose forms are.
        """
        ...

    async def end_run(
        self, run_id: str, holder: str | None, ended: Ended, entries: LogEntries = NO_ENTRIES
    ) -> bool:
        """Set a run's final status; return True if it had none.

        With `holder` `None` the present holder loses the run: this is how a run is cancelled, and it
        publishes nothing any more.
        """
        ...

    async def purge(self, keep_seconds: float | None) -> int:
        """Delete the runs ended at least `keep_seconds` ago; return their number.

        `None` deletes none of these. Runs that are not kept, and ended a minute ago or longer, are deleted in
        any case, and so are expired entries of limits.
        """
        ...


class Journal(Protocol):
    """The steps of runs; each is stored before its effect is relied on."""

    async def add_turn(
        self,
        run_id: str,
        holder: str,
        turn: StoredTurn,
        calls: Sequence[StoredCall],
        entries: LogEntries = NO_ENTRIES,
    ) -> None:
        """Store an answer of the model with its calls, all or nothing.

        The `entries` of the log are stored in the same transaction.
        """
        ...

    async def mark_sent(self, run_id: str, holder: str, event_id: str, *, seconds: float = 0.0) -> None:
        """Mark a call as sent, before sending it. Its reply is due in `seconds`."""
        ...

    async def find_due_call(self, event_id: str) -> tuple[StoredCall, float] | None:
        """Return a call and the seconds until its reply is due. The clock is that of the store."""
        ...

    async def mark_accepted(
        self,
        run_id: str,
        holder: str | None,
        event_id: str,
        *,
        seconds: float,
        exchanged: Exchanged | None = None,
    ) -> None:
        """Mark a sent call as answered later, by an event.

        The answer is due in `seconds`, by the clock of the database: that of a replica may be wrong. With
        `holder` `None` the tool says so, and not the process that made the call.
        """
        ...

    async def store_report(self, event_id: str, report: Mapping[str, Any]) -> bool:
        """Store the latest progress report of an unanswered call. Return True if there is such a call."""
        ...

    async def list_reports(self, run_id: str) -> list[StoredCall]:
        """Return the unanswered calls of a run with a progress report, or with a form that waits."""
        ...

    async def finish_call(
        self,
        event_id: str,
        *,
        result: object,
        failed: bool,
        seconds: float | None,
        tokens: int = 0,
        exchanged: Exchanged | None = None,
    ) -> bool:
        """Store the result of a call and the events of both directions.

        Return True if it was the first result. It may come from the process that made the call, or from one
        that took a late reply. A suspended run that waits for nothing more is queued.
        """
        ...

    async def store_decision(self, event_id: str, decision: Decision, *, by: str, reason: str = "") -> bool:
        """Store the decision on a call with a pending approval.

        Return True if it was the first one. A suspended run that waits for no more decisions is queued.
        """
        ...

    async def store_input_request(
        self,
        event_id: str,
        request: Mapping[str, Any],
        *,
        seconds: float,
        exchanged: Exchanged | None = None,
    ) -> bool:
        """Store the form of a sent or accepted call: it waits for input from now on, for `seconds`.

        Return True unless the call has its result. A suspended run is queued, to add the form to its events.
        """
        ...

    async def store_input_answer(self, event_id: str, answer: Mapping[str, Any]) -> bool:
        """Store the answer to the form of a call; return True for the first one.

        The call may be sent again with it as `next_call_id(event_id)`. Its run goes on if nothing else waits.
        """
        ...

    async def store_partial_answer(self, event_id: str, request: Mapping[str, Any]) -> bool:
        """Store a request that has some of its answers; return True for the first ones.

        The call waits for the rest as `next_call_id(event_id)`. A suspended run is queued, to add the next
        form to its events.
        """
        ...

    async def find_call(self, event_id: str) -> tuple[str, StoredCall] | None:
        """Return a call and the id of its run."""
        ...

    async def list_overdue(self, *, most: int) -> list[tuple[str, StoredCall]]:
        """Return calls past their deadline, with the ids of their runs.

        They wait for a later answer, or for input.
        """
        ...


class EventLog(Protocol):
    """The published events of runs, for resuming a stream at any replica."""

    async def append(self, run_id: str, holder: str, entries: LogEntries) -> None:
        """Store events; existing numbers stay as they are."""
        ...

    async def read_after(
        self, run_id: str, number: int, *, most: int
    ) -> list[tuple[int, Mapping[str, object]]]:
        """Return the events after a number, in their order."""
        ...


class Conversations(Protocol):
    """Message threads independent of the life of their runs."""

    async def open(self, conversation: StoredConversation, messages: Sequence[Message]) -> None:
        """Store a new conversation with its first messages. Raises `ValueError` if the id is taken."""
        ...

    async def find(self, conversation_id: str) -> StoredConversation | None:
        """Return a conversation."""
        ...

    async def update(self, conversation_id: str, metadata: Mapping[str, str]) -> bool:
        """Replace the metadata; return True if the conversation exists."""
        ...

    async def rewrite(
        self, conversation_id: str, change: Callable[[list[Message]], list[Message] | None]
    ) -> bool:
        """Replace all messages by what `change` makes of them; its runs keep what they had seen.

        Return False if there is no such conversation, or `change` returns `None`.
        """
        ...

    async def close(self, conversation_id: str) -> bool:
        """Delete a conversation; return True if it existed. Its runs stay."""
        ...

    async def read(self, conversation_id: str) -> list[Message]:
        """Return all messages in order: the initial ones, then each ended run's."""
        ...


class History(Protocol):
    """Lists of an owner's runs, conversations and calls, for people.

    Runs and conversations are listed with the newest first. `after` is the id of the last entry of the page
    before; raises `KeyError` if this owner has nothing with that id. For a conversation its `place` is
    better: it stays valid when the conversation is used again or deleted.
    """

    async def list_runs(
        self, owner: str, wanted: RunFilter, *, after: str | None, most: int
    ) -> list[RunSummary]:
        """Return the kept runs matching the filter."""
        ...

    async def list_conversations(
        self, owner: str, *, query: str, after: str | None, most: int
    ) -> list[ConversationSummary]:
        """Return conversations, with a `query` only those containing its words.

        Questions and answers are searched.
        """
        ...

    async def list_waiting_calls(
        self, owner: str, state: PersonState, *, after: str | None, most: int
    ) -> list[Waiting]:
        """Return the calls that wait for a person, the oldest run first. `after` is an event id."""
        ...

    async def list_exchanged(self, run_id: str, *, after: str | None, most: int) -> list[Exchanged]:
        """Return the exchanged events of a run's calls, in their order. `after` is an event id."""
        ...


class Materials(Protocol):
    """JSON documents shared by many turns: system messages and tools."""

    async def store_documents(self, documents: Mapping[str, object]) -> None:
        """Store JSON documents under their digests; extend the life of existing ones.

        They are deleted a day after their last use at the earliest, and not before all runs from that time
        are deleted. So a process that relies on a document repeats the call every hour.
        """
        ...

    async def read_documents(self, digests: Iterable[str]) -> dict[str, Any]:
        """Return the documents found, by digest."""
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
    feed: Feed
    push: PushTargets
    owed_answers: OwedAnswers

    async def open_scratch(self) -> "Store":
        """Return a new store in memory for temporary data."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
