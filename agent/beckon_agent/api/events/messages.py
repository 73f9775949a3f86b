"""The message that an event becomes, and its reply event."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import orjson

from beckon_agent.core.json_values import is_object
from beckon_agent.core.model_types import Message, Usage
from beckon_agent.core.records import StoredRun
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
from beckon_agent.core.run_types import Agent, CallBudget, usage_attribute
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, EventError, EventFormatError
from beckon_contract.cloudevents.extensions import ACCEPTED, CAUSE, STATE, is_json
from beckon_contract.failures import Reason, failure
from beckon_contract.jsontext import NotJsonError, members
from beckon_contract.yamltext import NotReadable, check_depth
from beckon_runtime.tracing import carried

QUESTION = "question"
NOTHING = "NO_REPLY"

_SHOWN_ATTRIBUTES = ("type", "source", "subject", "time")
_UNAWAITED = f"No client waits for an answer. If there is nothing to report, answer with exactly {NOTHING}."


def message_of(event: CloudEvent, *, awaited: bool) -> Message:
    """Return an event as a user message.

    If no answer is awaited, the message says so. Raises `EventError` for data that does not match its
    declared type, and `EventFormatError` for data that is neither JSON nor text.
    """
    text = _question_of(event)
    return {"role": "user", "content": text if awaited else f"{text}\n\n{_UNAWAITED}"}


def _question_of(event: CloudEvent) -> str:
    if event.data is None:
        return _describe_event(event, "")
    if is_json(event.datacontenttype):
        return _from_json(event, _read_json(event))
    if (event.datacontenttype or "").lower().startswith("text/"):
        return _decode_data(event)
    raise EventFormatError(
        f"an agent reads JSON and text, and the data of this event is {event.datacontenttype}"
    )


def _from_json(event: CloudEvent, data: object) -> str:
    if isinstance(data, str):
        return data
    if isinstance(data, Mapping) and isinstance(question := data.get(QUESTION), str) and question.strip():
        rest = _without_question(event)
        return f"{question}\n\n{rest}" if rest else question
    return _describe_event(event, _decode_data(event).strip())


def _without_question(event: CloudEvent) -> str:
    """Return the other members of an object as they were written. Large numbers are not changed."""
    try:
        texts = members(event.data or b"")
    except NotJsonError as error:
        raise EventError(f"the data of event {event.id!r} is not JSON: {error}") from None
    rest = [
        f"{orjson.dumps(name).decode()}: {text.decode()}" for name, text in texts.items() if name != QUESTION
    ]
    return "{" + ", ".join(rest) + "}" if rest else ""


def _describe_event(event: CloudEvent, data: str) -> str:
    """Return the text of an event without a question. The attributes hold no line breaks."""
    attributes = event.attributes()
    lines = [f"{name}: {attributes[name]}" for name in _SHOWN_ATTRIBUTES if name in attributes]
    return "\n".join(["An event has come.", *lines, *(["data:", data] if data else [])])


def _read_json(event: CloudEvent) -> object:
    data = event.json()
    try:
        check_depth(data)
    except NotReadable as error:
        raise EventError(f"the data of event {event.id!r} cannot be read: {error}") from None
    return data


def _decode_data(event: CloudEvent) -> str:
    try:
        return (event.data or b"").decode()
    except UnicodeDecodeError:
        raise EventError(f"the data of event {event.id!r} is not UTF-8; send text as UTF-8") from None


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

    def to_data(self) -> bytes:
        """Return the data of the reply, as JSON.

        It is `{"answer": …}`, or the answer itself if that is a JSON object. An answer that did not end
        with `stop` has its `ending` beside it, unless it is a JSON object that is not `incomplete`.
        """
        if self.ending != "incomplete" and self.text.startswith("{") and is_object(self.text):
            return self.text.encode()
        members: dict[str, str] = {"answer": self.text}
        if self.ending != "stop":
            members["ending"] = self.ending
        return orjson.dumps(members)

    @property
    def is_nothing(self) -> bool:
        """True if the agent has nothing to say."""
        return self.text in ("", NOTHING)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A run without an answer: failed or suspended."""

    why: Literal["failed", "suspended"]
    message: str


class RunAnswerReader:
    """Reads the result of a run from its events. `result` is `None` for a run ended from outside."""

    def __init__(self) -> None:
        self.result: RunAnswer | Unanswered | None = None
        self._before = self._latest = ""  # what the model says on its way to the answer is not the answer

    def feed_event(self, event: RunEvent) -> None:
        """Read the next event."""
        self.result = None
        match event:
            case TextDelta():
                self._latest += event.text
            case AnswerDropped():
                self._latest = ""
            case CallStarted():
                self._before, self._latest = self._before + self._latest, ""
            case RunFinished():
                text = self._latest.strip() or self._before.strip()
                self.result = RunAnswer(text, event.ending, event.usage, event.elsewhere)
            case RunFailed():
                self.result = Unanswered("failed", event.message)
            case RunSuspended():
                self.result = Unanswered("suspended", _WAITS)
            case _:
                pass


async def read_answer(events: AsyncIterator[tuple[int, RunEvent]]) -> RunAnswer | Unanswered | None:
    """Return the result of a run, at its end or suspension. `None` for a run ended from outside."""
    coming = RunAnswerReader()
    async for _, event in events:
        coming.feed_event(event)
    return coming.result


def outcome_of(run: StoredRun) -> Unanswered:
    """Return the outcome of a run without an answer in its events: it was cancelled, or could not go on."""
    return Unanswered("failed", (run.error or {}).get("message") or f"the run is {run.status}")


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
    def is_awaited(self) -> bool:
        """True if an answer is awaited."""
        return self.token is not None

    def write_answer(self, answer: RunAnswer) -> CloudEvent:
        """Return the reply with an answer."""
        remaining = self.chain.to_attributes(self.agent.limits.tokens, answer.usage, answer.elsewhere)
        attributes = {**remaining, **usage_attribute(answer.usage, answer.elsewhere)}
        return self._write_reply(answer.to_data(), attributes)

    def write_failure(self, reason: Reason, message: str) -> CloudEvent:
        """Return the reply with a failure, in the form of tool failures."""
        return self._write_reply(
            orjson.dumps(failure(reason, message)), self.chain.to_attributes(self.agent.limits.tokens, None)
        )

    def write_acceptance(self) -> CloudEvent:
        """Return the reply announcing a later answer."""
        return replace(
            self._write_reply(None, {STATE: ACCEPTED}), id=f"{self.run_id}.accepted", datacontenttype=None
        )

    def _write_reply(self, data: bytes | None, attributes: dict[str, AttributeValue]) -> CloudEvent:
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
