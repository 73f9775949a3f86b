"""The acceptance of events: start a run, ignore, or refuse for good."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf
from typing import Annotated, Any, Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.events.messages import REPLY_SUFFIX, Replier, message_of
from beckon_agent.api.http.openapi import schema_reference
from beckon_agent.core.records import NewRun, StoredRun
from beckon_agent.core.run_types import Agent, CallBudget, Limits, Options
from beckon_agent.durable.base import Ask
from beckon_contract.cloudevents.events import CloudEvent, EventError, EventFormatError, from_structured
from beckon_contract.cloudevents.extensions import BUDGET, DEPTH, is_timestamp, parse_expiry
from beckon_runtime.problem import Problem, ProblemError, for_dead_letter

NonEmpty = Annotated[str, Field(min_length=1)]


class StructuredEvent(TypedDict):
    """A CloudEvent in structured mode; `beckon_contract.cloudevents.events` reads it."""

    specversion: Literal["1.0"]
    id: NonEmpty
    source: Annotated[NonEmpty, Field(json_schema_extra={"format": "uri-reference"})]
    type: NonEmpty
    subject: NotRequired[NonEmpty | None]
    time: NotRequired[datetime | None]
    datacontenttype: NotRequired[NonEmpty | None]
    data: NotRequired[
        Annotated[
            Any, Field(description="A question as a string, an object with one in `question`, or anything.")
        ]
    ]


EVENT: dict[str, Any] = {
    "parameters": [
        {
            "name": f"ce-{name}",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},  # not read in structured mode
            "description": f"The attribute `{name}` in binary mode, in which it is required.",
        }
        for name in ("specversion", "id", "source", "type")
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/cloudevents+json": {"schema": schema_reference(StructuredEvent)},
            "application/json": {"schema": {}},
            "text/plain": {"schema": {"type": "string"}},
        },
    },
}
"""For a route's `openapi_extra`."""


def to_event_problem(
    status: int, slug: str, title: str, detail: str, members: Mapping[str, object] | None = None
) -> ProblemError:
    """Return the answer to an event, readable in the dead letter that a Broker makes of it."""
    return ProblemError(for_dead_letter(Problem(status, slug, title, detail, members or {})))


@contextmanager
def event_problems() -> Iterator[None]:
    """Answer 415 or 400 for what is no event, or no readable one."""
    try:
        yield
    except EventFormatError as error:
        raise to_event_problem(415, "unsupported-event", "Unsupported event", str(error)) from None
    except EventError as error:
        raise to_event_problem(400, "invalid-event", "Invalid event", str(error)) from None


FACE = "events"


@dataclass(frozen=True, slots=True)
class EventRules:
    """The rules for events.

    The value of `correlation_attribute` is returned as `reply_attribute`, as by every tool. Runs deeper
    than `max_depth` are refused. `max_waiting` deliveries may wait for their runs at once. `sink` is the
    Broker for answers of runs that had to wait; if it is empty, they are reported as a time-out.
    """

    correlation_attribute: str = "correlationid"
    reply_attribute: str = "replyid"
    max_depth: int = 4
    max_waiting: int = 1024
    sink: str = ""


@dataclass(frozen=True, slots=True)
class AcceptedEvent:
    """An event for this agent to answer. `expires` is in seconds since the epoch."""

    event: CloudEvent
    hosted: AgentHandle
    owner: str
    chain: CallBudget
    expires: float | None
    replier: Replier

    @property
    def run_id(self) -> str:
        """The id of its run, the same for each of its deliveries."""
        return self.replier.run_id

    def to_ask(self) -> Ask:
        """Return the run to start; raise `EventError` for unreadable data."""
        attributes = self.event.attributes()
        new = NewRun(
            id=self.run_id,
            owner=self.owner,
            agent=self.hosted.name,
            face=FACE,
            input=[message_of(self.event, awaited=self.replier.is_awaited)],
            request={"event": attributes},
            background=True,  # a Broker that hangs up comes again, and finds it
        )
        agent = replace(self.hosted.agent, limits=self._reduce_limits())
        return Ask(new, replace(self.hosted, agent=agent), Options(chain=self.chain))

    def _reduce_limits(self) -> Limits:
        """Return the agent's limits, reduced to those of the event.

        These are the tokens left in the chain of agents, and the seconds until the event expires.
        """
        limits = self.hosted.agent.limits
        return replace(
            limits,
            tokens=self.chain.token_limit(limits.tokens),
            seconds=min(limits.seconds, self.seconds_left),
        )

    @property
    def seconds_left(self) -> float:
        """The seconds until the event expires; infinite without an expiry."""
        return inf if self.expires is None else self.expires - time.time()


def accept_event(
    event: CloudEvent, hosted: AgentHandle, owner: str, rules: EventRules
) -> AcceptedEvent | None:
    """Return an event to answer, or `None` for one to ignore.

    Raises `EventError` for attributes that cannot be read, and `ProblemError` for a chain of agents that
    is too long or has used up its tokens. Its status is 403, after which Brokers do not try again.
    """
    if is_answer(event, hosted, rules):
        return None
    chain = CallBudget.from_event(event)
    if chain.depth > rules.max_depth:
        raise _refuse_event(
            "too-deep",
            f"this would be agent {chain.depth} in a chain of agents that call each other, and the limit is "
            f"{rules.max_depth} ({DEPTH})",
        )
    if chain.budget is not None and chain.budget <= 0:
        raise _refuse_event(
            "no-budget", f"the chain of agents that this event belongs to has no tokens left ({BUDGET})"
        )
    replier = _make_replier(event, hosted.agent, run_id_of(event, hosted.name, owner), rules)
    return AcceptedEvent(event, hosted, owner, chain, _read_expiry(event), replier)


def replier_of(run: StoredRun, agent: Agent, rules: EventRules) -> Replier:
    """Return the replier for the event of a stored run."""
    event = from_structured(orjson.dumps(run.request["event"]))
    return _make_replier(event, agent, run.id, rules)


def _make_replier(event: CloudEvent, agent: Agent, run_id: str, rules: EventRules) -> Replier:
    token = event.attributes().get(rules.correlation_attribute)
    return Replier(event, agent, run_id, CallBudget.from_event(event), rules.reply_attribute, token)


def is_answer(event: CloudEvent, hosted: AgentHandle, rules: EventRules) -> bool:
    """Return True if an event is an answer; agents do not accept answers.

    Otherwise a Trigger with too wide a filter would let an agent answer answers, its own among them,
    without end.
    """
    own = event.source == hosted.agent.source and event.type.endswith(REPLY_SUFFIX)
    return own or rules.reply_attribute in event.extensions


def run_id_of(event: CloudEvent, agent: str, owner: str) -> str:
    """Return the id of an event's run, made of source and id.

    These two identify an event. Owner and agent are part of the run's id as well: no caller gets the answer
    of another caller by knowing the id of an event.
    """
    parts = (owner, agent, event.source, event.id)
    digest = hashlib.sha256(b"".join(len(part.encode()).to_bytes(4) + part.encode() for part in parts))
    return f"event_{digest.hexdigest()[:40]}"


def _read_expiry(event: CloudEvent) -> float | None:
    written = event.extensions.get("expirytime")
    if written is None:
        return None
    if not (isinstance(written, str) and is_timestamp(written)):
        raise EventError("the attribute 'expirytime' is not a timestamp of RFC 3339")
    return parse_expiry(written)


def _refuse_event(slug: str, detail: str) -> ProblemError:
    return ProblemError(for_dead_letter(Problem(403, slug, slug.replace("-", " ").capitalize(), detail)))
