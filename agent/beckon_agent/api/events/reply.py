"""The result of a run, and its reply event."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from beckon_agent.api.events.question import NOTHING
from beckon_agent.core.call_budget import CallBudget, usage_attribute
from beckon_agent.core.model_types import Usage
from beckon_agent.core.run_events import (
    AnswerDropped,
    CallStarted,
    Ending,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TextDelta,
)
from beckon_agent.core.run_types import Agent
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
    """The answer of an ended run; it may be empty."""

    text: str
    ending: Ending
    usage: Usage | None
    elsewhere: int = 0

    def data(self) -> bytes:
        """Return the data of the reply, as JSON.

        It is `{"answer": …}`, or the answer itself if that is a JSON object. An answer that did not end
        with `stop` has its `ending` beside it, unless it is a JSON object that is not `incomplete`.
        """
        if self.ending != "incomplete" and self.text.startswith("{") and _is_object(self.text):
            return self.text.encode()
        members: dict[str, str] = {"answer": self.text}
        if self.ending != "stop":
            members["ending"] = self.ending
        return orjson.dumps(members)

    @property
    def nothing(self) -> bool:
        """True if the agent has nothing to say."""
        return self.text in ("", NOTHING)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A run without an answer: failed or suspended."""

    why: Literal["failed", "suspended"]
    message: str


class RunAnswerReader:
    """Reads the result of a run from its events.

    `found` is `None` for a run ended from outside.
    """

    def __init__(self) -> None:
        self.found: RunAnswer | Unanswered | None = None
        self._before = self._latest = ""  # what the model says on its way to the answer is not the answer

    def feed(self, event: RunEvent) -> None:
        """Read the next event."""
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


async def read_answer(events: AsyncIterator[tuple[int, RunEvent]]) -> RunAnswer | Unanswered | None:
    """Return the result of a run, at its end or suspension.

    `None` for a run ended from outside.
    """
    coming = RunAnswerReader()
    async for _, event in events:
        coming.feed(event)
    return coming.found


@dataclass(frozen=True, slots=True)
class Replier:
    """Writes the replies to one event.

    `token` is the correlation of the answer, `None` if no answer is awaited.
    """

    event: CloudEvent
    agent: Agent
    run_id: str
    chain: CallBudget
    reply_attribute: str
    token: AttributeValue | None

    @property
    def awaited(self) -> bool:
        """True if an answer is awaited."""
        return self.token is not None

    def answer(self, said: RunAnswer) -> CloudEvent:
        """Return the reply with an answer."""
        left = self.chain.to_attributes(self.agent.limits.tokens, said.usage, said.elsewhere)
        attributes = {**left, **usage_attribute(said.usage, said.elsewhere)}
        return self._reply(said.data(), attributes)

    def failure(self, reason: Reason, message: str) -> CloudEvent:
        """Return the reply with a failure, in the form of tool failures."""
        return self._reply(
            orjson.dumps(failure(reason, message)), self.chain.to_attributes(self.agent.limits.tokens, None)
        )

    def accepted(self) -> CloudEvent:
        """Return the reply announcing a later answer."""
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
