"""The events of a run as events of AG-UI (docs.ag-ui.com/spec/1.0), as server-sent events.

One answer of the model is one message with its text and its calls. A call that waits for an approval or
for input ends the stream with an interrupt; the request that answers it gets the next part of the run.
"""

import json
from collections.abc import Collection
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    ActivitySnapshotEvent,
    BaseEvent,
    Interrupt,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)
from ag_ui.encoder import EventEncoder
from pydantic_core import PydanticSerializationError

from beckon_agent.api.responses.documents import approval_id
from beckon_agent.api.responses.forms import input_id
from beckon_agent.core import json_values
from beckon_agent.core.model_types import Usage
from beckon_agent.core.run_events import (
    AnswerDropped,
    ApprovalRequested,
    CallFinished,
    CallProgressed,
    CallStarted,
    ClientCallRequested,
    InputRequested,
    ReasoningDelta,
    RunEvent,
    RunFailed,
    RunFinished,
    RunSuspended,
    TextDelta,
    TurnNoted,
)

_DECISION = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}


class AguiStream:
    """Encodes one part of a run.

    It takes all events of the run, and skips those before the answers to interrupts. `is_ended` is true after
    the last event of the part.
    """

    def __init__(
        self, run: str, thread_id: str, run_id: str, *, agent: str, answered: Collection[str] = ()
    ) -> None:
        """Encode what follows the answered interrupts of a run, for the ids that the client has given."""
        self._run = run
        self._ids = {"thread_id": thread_id, "run_id": run_id}
        self._agent = agent
        self._to_skip = set(answered)
        self._encoder = EventEncoder()
        self._events: list[BaseEvent] = []
        self._messages = 0
        self._message = ""  # of this answer of the model
        self._open = ""  # "text" or "reasoning", while one of them grows
        self._has_called = False
        self._announced: set[str] = set()
        self._pending: dict[str, Interrupt] = {}
        self._handed: list[str] = []
        self.is_ended = False

    def begin_run(self, state: object) -> bytes:
        """Return the events before the first event of the run; the state is the client's own."""
        run = {"beckon.dev": {"run": self._run}} if self._run else None
        started = RunStartedEvent(**self._ids, protocol_version=PROTOCOL_VERSION, metadata=run)
        self._events = [started, *((StateSnapshotEvent(snapshot=state),) if state is not None else ())]
        return self._take_bytes()

    def encode_event(self, event: RunEvent) -> bytes:
        """Return the events for an event of the run; nothing once the part has ended."""
        if not self.is_ended:
            if self._pending and _is_decided(event, self._pending):
                self._end_part()
            self._add_event(event)
        return self._take_bytes()

    def end_cancelled(self) -> bytes:
        """Return the last events of a cancelled or deleted run. A text that has begun is ended first."""
        if not self.is_ended:
            self._close()
            self._finish(RunFinishedEvent(**self._ids, outcome=RunFinishedCancelledOutcome()))
        return self._take_bytes()

    def end_failed(self, code: str, message: str) -> bytes:
        """Return the last event of a stream that failed."""
        if not self.is_ended:
            self._to_skip.clear()
            self._finish(RunErrorEvent(message=message, code=code))
        return self._take_bytes()

    def _take_bytes(self) -> bytes:
        encoded, self._events = "".join(map(self._encode, self._events)), []
        return encoded.encode()

    def _encode(self, event: BaseEvent) -> str:
        try:
            return self._encoder.encode(event)
        except PydanticSerializationError:  # half of a surrogate pair, which only an escape can carry
            return f"data: {json.dumps(event.model_dump(by_alias=True))}\n\n"

    def _add_event(self, event: RunEvent) -> None:
        match event:
            case TextDelta(text) | ReasoningDelta(text):
                self._grow(text, "reasoning" if isinstance(event, ReasoningDelta) else "text")
            case (
                CallStarted()
                | ApprovalRequested()
                | InputRequested()
                | ClientCallRequested()
                | CallFinished()
            ):
                self._close()
                self._add_call(event)
            case CallProgressed():
                self._add_progress(event)
            case TurnNoted() if self._has_called:
                self._message, self._has_called = "", False
            case RunSuspended() if self._pending:
                self._end_part()
            case AnswerDropped():
                message = "the answer broke off, and was begun anew; send the request again"
                self._finish(RunErrorEvent(message=message, code="broken_off"))
            case RunFinished() | RunFailed():
                self._end_run(event)

    def _grow(self, text: str, kind: str) -> None:
        if self._has_called:
            self._message, self._has_called = "", False
        if self._open != kind:
            self._close()
            text = text.lstrip("\n")  # what sets it off from the message before
            if not text:
                return
            self._open = kind
            identity = self._message_id() if kind == "text" else f"{self._message_id()}.reasoning"
            if kind == "text":
                self._emit(TextMessageStartEvent(message_id=identity, role="assistant"))
            else:
                self._emit(ReasoningStartEvent(message_id=identity))
                self._emit(ReasoningMessageStartEvent(message_id=identity))
        if not text:
            return
        if kind == "text":
            self._emit(TextMessageContentEvent(message_id=self._message, delta=text))
        else:
            self._emit(ReasoningMessageContentEvent(message_id=f"{self._message}.reasoning", delta=text))

    def _close(self) -> None:
        if self._open == "text":
            self._emit(TextMessageEndEvent(message_id=self._message))
        elif self._open:
            identity = f"{self._message}.reasoning"
            self._emit(ReasoningMessageEndEvent(message_id=identity))
            self._emit(ReasoningEndEvent(message_id=identity))
        self._open = ""

    def _add_call(
        self, event: CallStarted | ApprovalRequested | InputRequested | ClientCallRequested | CallFinished
    ) -> None:
        match event:
            case CallFinished(identity, _, result, failed):
                content = result if isinstance(result, str) else json_values.to_json(result)
                self._emit(
                    ToolCallResultEvent(
                        message_id=f"{self._run}.{identity}",
                        tool_call_id=identity,
                        content=content,
                        role="tool",
                        metadata={"beckon.dev": {"failed": True}} if failed else None,
                    )
                )
            case ClientCallRequested(identity, name, arguments):
                self._announce(identity, name, arguments)
                self._handed.append(identity)
            case CallStarted(identity, name, arguments):
                self._announce(identity, name, json_values.to_json(arguments))
            case ApprovalRequested(event_id, identity, name, arguments):
                self._announce(identity, name, json_values.to_json(arguments))
                self._pending[identity] = Interrupt(
                    id=approval_id(event_id),
                    reason="tool_call",
                    message=f"May the agent call {name}?",
                    tool_call_id=identity,
                    response_schema=_DECISION,
                )
            case InputRequested():
                self._pending[event.id] = Interrupt(
                    id=input_id(event.event_id),
                    reason="input_required",
                    message=event.message,
                    tool_call_id=event.id,
                    response_schema=dict(event.schema),
                )

    def _announce(self, identity: str, name: str, arguments: str) -> None:
        """Add the events of a call, once: after an approval it begins anew."""
        self._has_called = True
        if identity in self._announced:
            return
        self._announced.add(identity)
        parent = self._message_id()
        self._emit(ToolCallStartEvent(tool_call_id=identity, tool_call_name=name, parent_message_id=parent))
        self._emit(ToolCallArgsEvent(tool_call_id=identity, delta=arguments))
        self._emit(ToolCallEndEvent(tool_call_id=identity))

    def _add_progress(self, report: CallProgressed) -> None:
        members = {"done": report.done, "total": report.total, "message": report.message}
        content: dict[str, Any] = {"toolCallId": report.id, "name": report.name, **members}
        identity = f"{self._run}.{report.id}.progress"
        self._emit(
            ActivitySnapshotEvent(message_id=identity, activity_type="beckon.progress", content=content)
        )

    def _end_part(self) -> None:
        """End a part with its interrupts. Later events belong to the next part."""
        self._close()
        interrupts = list(self._pending.values())
        self._pending = {}
        if self._to_skip:
            self._to_skip -= {one.id for one in interrupts}
            return
        outcome = RunFinishedInterruptOutcome(interrupts=interrupts)
        self._finish(RunFinishedEvent(**self._ids, outcome=outcome))

    def _end_run(self, event: RunFinished | RunFailed) -> None:
        self._close()
        match event:
            case RunFailed("cancelled"):
                self._finish(RunFinishedEvent(**self._ids, outcome=RunFinishedCancelledOutcome()))
            case RunFailed(code, message):
                self._finish(RunErrorEvent(message=message, code=code))
            case RunFinished(ending, usage):
                outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=self._handed or None)
                self._finish(
                    RunFinishedEvent(
                        **self._ids,
                        outcome=outcome,
                        usage=None if usage is None else [_to_usage(usage, self._agent)],
                        metadata={"beckon.dev": {"ending": ending}},
                    )
                )

    def _finish(self, event: BaseEvent) -> None:
        self._emit(event)
        self.is_ended = not self._to_skip

    def _message_id(self) -> str:
        if not self._message:
            self._messages += 1
            self._message = f"{self._run}.{self._messages}"
        return self._message

    def _emit(self, event: BaseEvent) -> None:
        if not self._to_skip:
            self._events.append(event)


def _is_decided(event: RunEvent, pending: dict[str, Interrupt]) -> bool:
    """Return True if a run has continued after its interrupts, maybe without `RunSuspended` before."""
    match event:
        case CallFinished(id=identity) | InputRequested(id=identity):
            return identity in pending
        case TextDelta() | ReasoningDelta() | RunFinished():
            return True
        case _:
            return False


def _to_usage(usage: Usage, agent: str) -> TokenUsage:
    return TokenUsage(
        model=agent,
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        total_tokens=usage.total_tokens,
        reasoning_tokens=usage.completion_details.get("reasoning_tokens"),
        cached_input_tokens=usage.prompt_details.get("cached_tokens"),
    )
