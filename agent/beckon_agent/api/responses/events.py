"""The events of a run as the semantic events of one response.

Their sequence numbers are the same in every stream of the response. The order of events is that of the
specification, https://www.openresponses.org/specification: an item is added, its parts grow, it is done;
the response is created, in progress, and at its end.
"""

from beckon_agent.api.responses import item_types, output
from beckon_agent.api.responses.documents import (
    ResponseDocument,
    State,
    approval_id,
    response_document,
    state_of_ending,
    state_of_run,
)
from beckon_agent.api.responses.item_types import ItemTypes
from beckon_agent.api.responses.output import McpCallItem, Progress
from beckon_agent.api.responses.part_writer import HIDDEN, Event, PartWriter
from beckon_agent.api.responses.text_parts import OpenText, TextKind, kind_of, place_citation, write_part
from beckon_agent.core import json_values
from beckon_agent.core.records import FINAL, StoredRun
from beckon_agent.core.run_events import (
    AnnotationAdded,
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

_CUT: frozenset[str] = frozenset({"length", "content_filter", "incomplete"})


class Encoder(PartWriter):
    """Encodes the events of one part of a run.

    It takes all events of the run, and skips the parts before. A part ends when the run waits for
    approvals. `state` is the state of the part at its end, `None` until then.
    """

    def __init__(
        self, run: StoredRun, part: int = 1, *, types: ItemTypes | None = None, reports: bool = False
    ) -> None:
        """Encode a part in `types`, else as it was made; `reports` includes progress reports of tools."""
        super().__init__(run, part, types or item_types.types_of(run))
        self._reports = reports
        self.state: State | None = None
        self._unsure: list[int] = []
        self._text: OpenText | None = None
        self._earlier: list[OpenText] = []  # messages of the same answer before its reasoning
        self._calls: dict[str, tuple[int, McpCallItem]] = {}  # in progress, by the id of the call
        self._awaiting: set[str] = set()
        self._known: dict[str, CallStarted] = {}
        self._finished: set[str] = set()
        self._approvals: dict[str, str] = {}
        self._forms: set[str] = set()

    @property
    def is_paused(self) -> bool:
        """True if the part ended with approval requests. The run then continues in the next part."""
        return self.state is not None and self._part > self._wanted

    def begin_response(self) -> list[Event]:
        """Return the events before the first event of the run."""
        self._events = []
        if self._wanted == 1:
            self._open_response()
        return self._events

    def feed_event(self, event: RunEvent, ended_at: float | None = None) -> list[Event]:
        """Return the response events for an event of the run.

        The list is empty once the part has ended. `ended_at` is the time at which the run ended, for its
        last event.
        """
        self._events = []
        if self.state is None:
            if self._awaiting and self._is_decided(event):
                self._pause_part()
            self._encode_event(event, ended_at)
        return self._events

    def stop_response(self, run: StoredRun | None) -> list[Event]:
        """Return the last events of a run without an end event.

        Such a run was cancelled, or deleted (`run` is `None`).
        """
        self._events = []
        if self.state is None and self.is_reached and (run is None or run.status in FINAL):
            self._end_part(State("cancelled") if run is None else state_of_run(run, begun=True))
        return self._events

    @property
    def has_called(self) -> bool:
        """True if a call has ended, shown or not."""
        return bool(self._finished)

    def to_document(self, run: StoredRun) -> ResponseDocument:
        """Return the response as it is now."""
        state = self.state or state_of_run(run, begun=bool(self.output) or self._wanted > 1)
        return response_document(run, self._wanted, state, self.output)

    def _encode_event(self, event: RunEvent, ended_at: float | None) -> None:
        match event:
            case TextDelta() | ReasoningDelta():
                self._grow_text(event)
            case AnnotationAdded():
                self._annotate_text(event)
            case TurnNoted():
                self._unsure.clear()
            case AnswerDropped():
                self._drop_answer()
            case RunSuspended() | RunFinished() | RunFailed():
                self._encode_end(event, ended_at)
            case CallProgressed():
                self._report_progress(event)
            case (
                CallStarted()
                | CallFinished()
                | ApprovalRequested()
                | InputRequested()
                | ClientCallRequested()
            ):
                self._encode_call(event)

    def _encode_end(self, event: RunSuspended | RunFinished | RunFailed, ended_at: float | None) -> None:
        match event:
            case RunSuspended():
                self._suspend_run()
            case RunFinished(ending, usage):
                self._close_text("incomplete" if ending in _CUT else "completed")
                self._end_part(state_of_ending(ending, usage, ended_at))
            case RunFailed():
                self._fail_response(event)

    def _encode_call(
        self, event: CallStarted | CallFinished | ApprovalRequested | InputRequested | ClientCallRequested
    ) -> None:
        self._close_text("completed")
        match event:
            case CallStarted():
                self._start_call(event)
            case CallFinished():
                self._finish_call(event)
            case ApprovalRequested():
                self._request_approval(event)
            case InputRequested():
                self._request_input(event)
            case ClientCallRequested():
                self._hand_back(event)

    def _grow_text(self, event: TextDelta | ReasoningDelta) -> None:
        kind, delta = kind_of(event), event.text
        if self._text is None or self._text.kind != kind:
            if self._part > 1 and not any(item["type"] == "message" for item in self._added):
                delta = delta.removeprefix("\n\n")  # what sets it off from text of an earlier part
            if self._text is not None and self._text.kind == "message":
                self._earlier.append(self._text)  # stays open: its citations come after the whole answer
                self._text = None
            self._close_growing("completed")
            self._open_text(kind)
        text = self._text
        if text is None or not delta:
            return
        name, members = text.grow(delta, event.logprobs if isinstance(event, TextDelta) else ())
        self.emit_part(name, text, **members)

    def _annotate_text(self, added: AnnotationAdded) -> None:
        growing = [*self._earlier, self._text] if self._text is not None else self._earlier
        messages = [text for text in growing if text.kind == "message"]
        if messages:
            number, cited = place_citation(added, [text.length for text in messages])
            name, members = messages[number].annotate(cited)
            self.emit_part(name, messages[number], **members)

    def _open_text(self, kind: TextKind) -> None:
        identity = self.next_id("rs" if kind == "reasoning" else "msg")
        index = self.add_item(output.write_text_item(kind, identity, None, "in_progress"))
        self._unsure.append(index)
        self._text = OpenText(kind, identity, index)
        self.emit_part("response.content_part.added", self._text, part=write_part(kind, ""))

    def _close_text(self, status: Progress) -> None:
        for text in self._earlier:
            self._finish_text(text, status)
        self._earlier.clear()
        self._close_growing(status)

    def _close_growing(self, status: Progress) -> None:
        text, self._text = self._text, None
        if text is not None:
            self._finish_text(text, status)

    def _finish_text(self, text: OpenText, status: Progress) -> None:
        name, members = text.close()
        self.emit_part(name, text, **members)
        part = text.to_part()
        self.emit_part("response.content_part.done", text, part=part)
        self.finish_item(text.index, output.write_text_item(text.kind, text.id, part, status))

    def _drop_answer(self) -> None:
        """Remove the model's unfinished answer from the response. Its events stay in the stream."""
        self._close_text("incomplete")
        self._void.update(self._unsure)
        self._unsure.clear()

    def _start_call(self, call: CallStarted) -> None:
        """Encode the start of a call, once. A resumed run may publish the start again."""
        if call.id in self._calls or call.id in self._awaiting or call.id in self._finished:
            return
        self._known[call.id] = call
        arguments = json_values.to_json(call.arguments)
        item = output.write_mcp_call(
            self.next_id("mcp"), call.name, "", self._approvals.get(call.id), call.origin
        )
        item, index = item_types.write_call(item, self._types), HIDDEN
        if self._types != "specification":
            index = self.add_item(item)
        self.emit_call("response.mcp_call.in_progress", index)
        self.emit_call("response.mcp_call_arguments.delta", index, delta=arguments)
        self.emit_call("response.mcp_call_arguments.done", index, arguments=arguments)
        item = {**item, "arguments": arguments}
        if index != HIDDEN:
            self._added[index] = item
        self._calls[call.id] = index, item

    def _report_progress(self, report: CallProgressed) -> None:
        if not self._reports or report.id not in self._calls or self._part != self._wanted:
            return
        index, item = self._calls[report.id]
        self._events.append(
            {
                "type": item_types.PROGRESS,
                "sequence_number": self._sequence - 1,
                "item_id": item["id"],
                "output_index": index,
                "progress": report.done,
                "total": report.total,
                "message": report.message,
            }
        )

    def _finish_call(self, call: CallFinished) -> None:
        """Encode the result of a call, once. The call may have started in an earlier part, or been denied."""
        if call.id in self._finished:
            return
        self._start_call(self._known.get(call.id, CallStarted(call.id, call.name, {})))
        self._finished.add(call.id)
        index, item = self._calls.pop(call.id)
        self.emit_call("response.mcp_call.failed" if call.failed else "response.mcp_call.completed", index)
        self.finish_item(index, output.finish_mcp_call(item, call.result, failed=call.failed))

    def _request_approval(self, call: ApprovalRequested) -> None:
        if call.id in self._approvals:
            return
        if call.id in self._calls:  # it was reported as begun
            index, output_item = self._calls.pop(call.id)
            self.finish_item(index, {**output_item, "status": "incomplete"})
        identity = self._approvals[call.id] = approval_id(call.event_id)
        self._awaiting.add(call.id)
        self._known[call.id] = CallStarted(call.id, call.name, call.arguments, call.origin)
        item = output.write_approval_request(
            identity, call.name, json_values.to_json(call.arguments), call.origin
        )
        item = item_types.write_request(item, self._types)
        self.finish_item(self.add_item(item), item)

    def _request_input(self, form: InputRequested) -> None:
        """Encode a form, once. The response continues with its answer."""
        if form.event_id not in self._forms:
            self._forms.add(form.event_id)
            item = output.write_form_request(form)
            item = item_types.write_request(item, self._types)
            self.finish_item(self.add_item(item), item)

    def _hand_back(self, call: ClientCallRequested) -> None:
        identity = self.next_id("fc")
        begun = output.write_function_call(identity, call.id, call.name, "", "in_progress")
        index = self.add_item(begun)
        self.emit_item("response.function_call_arguments.delta", index, delta=call.arguments)
        self.emit_item(
            "response.function_call_arguments.done", index, arguments=call.arguments, name=call.name
        )
        self.finish_item(index, {**begun, "arguments": call.arguments, "status": "completed"})

    def _is_decided(self, event: RunEvent) -> bool:
        """True if the run has continued after its approval requests.

        It may do so without a `RunSuspended` event before.
        """
        match event:
            case CallFinished():
                return event.id in self._awaiting
            case TextDelta() | ReasoningDelta() | RunFinished():
                return True
            case _:
                return False

    def _suspend_run(self) -> None:
        if self._awaiting:
            self._pause_part()
        else:  # a tool answers later, and the response continues then
            self.emit_response("response.in_progress", State("in_progress"))

    def _pause_part(self) -> None:
        """End the part with its approval requests. Later events belong to the next part."""
        self._awaiting.clear()
        self._close_text("completed")
        self._end_part(State("completed"))
        self._part += 1
        if self.state is None:
            self._added, self._sequence = [], 0
            self._unsure, self._void = [], set()
            self._calls = {}
            if self._part == self._wanted:
                self._open_response()

    def _fail_response(self, failed: RunFailed) -> None:
        if failed.code == "cancelled":
            self._end_part(State("cancelled"))
            return
        self._close_text("incomplete")
        error = {"code": failed.code, "message": failed.message}
        self.emit_event("error", **item_types.write_error(failed.code, failed.message, self._types))
        self._end_part(State("failed", error=error, retry_after=failed.retry_after))

    def _end_part(self, state: State) -> None:
        cut = state.status in ("failed", "cancelled")
        self._close_text("incomplete" if cut else "completed")
        for index, item in self._calls.values() if cut else ():
            self.finish_item(index, {**item, "status": "incomplete"})
        # The API has no event for a cancelled response; this one reports an incomplete response.
        kind = "incomplete" if state.status == "cancelled" else state.status
        self.emit_response(f"response.{kind}", state)
        if self._part == self._wanted:
            self.state = state

    def _open_response(self) -> None:
        if self._run.background and self._part == 1:
            self.emit_response("response.created", State("queued"))
            self.emit_response("response.queued", State("queued"))
        else:
            self.emit_response("response.created", State("in_progress"))
        self.emit_response("response.in_progress", State("in_progress"))
