"""What a run came to, and the reply event that tells it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from beckon_agent.api.events.question import NOTHING
from beckon_agent.core.call_budget import CallBudget, usage_attribute
from beckon_agent.core.model_types import TextDelta, Usage
from beckon_agent.core.run_types import Agent, CallStarted, Ending, RunFinished, RunSuspended
from beckon_agent.durable.base import AnswerDropped, EngineEvent, RunFailed
from beckon_contract.acceptance import ACCEPTED, CAUSE, STATE
from beckon_contract.events import AttributeValue, CloudEvent
from beckon_contract.failures import Reason, failure
from beckon_contract.tracing import carried

REPLY_SUFFIX = ".reply"
_WAITS = "the agent waits for an approval, or for a tool that answers later"

# The trace (CloudEvents distributed tracing extension), and the counter by which brokers break loops.
_CARRIED = ("traceparent", "tracestate", "knativebrokerttl")


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """A run that ended with an answer, which may be empty."""

    text: str
    ending: Ending
    usage: Usage | None
    elsewhere: int = 0

    def data(self) -> bytes:
        """Return the data of the reply: `{"answer": …}`, or the answer itself where it is a JSON object.

        An answer that did not end with `stop` has its `ending` beside it, unless it is such an object that
        came to its end.
        """
        if self.ending != "incomplete" and self.text.startswith("{") and _is_object(self.text):
            return self.text.encode()
        members: dict[str, str] = {"answer": self.text}
        if self.ending != "stop":
            members["ending"] = self.ending
        return orjson.dumps(members)

    @property
    def nothing(self) -> bool:
        """Whether the agent says that it has nothing to say."""
        return self.text in ("", NOTHING)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A run that gave no answer: it failed, or waits for something else than its model."""

    why: Literal["failed", "suspended"]
    message: str


class RunAnswerReader:
    """What a run comes to, from its events; `found` is `None` for one that was ended from outside."""

    def __init__(self) -> None:
        self.found: RunAnswer | Unanswered | None = None
        self._before = self._latest = ""  # what the model says on its way to the answer is not the answer

    def feed(self, event: EngineEvent) -> None:
        """Take the next event."""
        self.found = None
        match event:
            case TextDelta():
                self._latest += event.text
            case AnswerDropped():
                self._latest = ""
            case CallStarted():
                self._before, self._latest = self._before + self._latest, ""
            case RunFinished():
                said = self._latest.strip() or self._before.strip()
                self.found = RunAnswer(said, event.ending, event.usage, event.elsewhere)
            case RunFailed():
                self.found = Unanswered("failed", event.message)
            case RunSuspended():
                self.found = Unanswered("suspended", _WAITS)
            case _:
                pass


async def read_answer(events: AsyncIterator[tuple[int, EngineEvent]]) -> RunAnswer | Unanswered | None:
    """Return what a run came to, once it has, or that it waits."""
    coming = RunAnswerReader()
    async for _, event in events:
        coming.feed(event)
    return coming.found


@dataclass(frozen=True, slots=True)
class Replier:
    """Writes the replies to one event; a `token` is what the one who waits knows its answer by."""

    event: CloudEvent
    agent: Agent
    run_id: str
    chain: CallBudget
    reply_attribute: str
    token: AttributeValue | None

    @property
    def awaited(self) -> bool:
        """Whether somebody waits for the answer."""
        return self.token is not None

    def answer(self, said: RunAnswer) -> CloudEvent:
        """Return the reply that holds an answer."""
        left = self.chain.onward(self.agent.limits.tokens, said.usage, said.elsewhere)
        attributes = {**left, **usage_attribute(said.usage, said.elsewhere)}
        return self._reply(said.data(), attributes)

    def failure(self, reason: Reason, message: str) -> CloudEvent:
        """Return the reply that tells a failure, as tools tell theirs."""
        return self._reply(
            orjson.dumps(failure(reason, message)), self.chain.onward(self.agent.limits.tokens, None)
        )

    def accepted(self) -> CloudEvent:
        """Return the reply that says that the answer comes in another one."""
        return replace(
            self._reply(None, {STATE: ACCEPTED}), id=f"{self.run_id}.accepted", datacontenttype=None
        )

    def _reply(self, data: bytes | None, attributes: dict[str, AttributeValue]) -> CloudEvent:
        extensions = self.event.extensions
        carried_on = {name: extensions[name] for name in _CARRIED if name in extensions}
        carried_on |= carried()  # the reply belongs to the span in which the event was taken
        if self.token is not None:
            carried_on[self.reply_attribute] = self.token
        return CloudEvent(
            id=f"{self.run_id}{REPLY_SUFFIX}",  # the same for every delivery of the event
            source=self.agent.source,
            type=f"{self.event.type}{REPLY_SUFFIX}",
            datacontenttype="application/json",
            subject=self.event.subject,
            data=data,
            extensions={**carried_on, **attributes, CAUSE: self.event.id},
        )


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
