"""Starting a run from a request, or resuming one with decisions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, Field

from beckon_agent.api.http.errors import ApiError
from beckon_agent.api.models import find_agent
from beckon_agent.api.responses.compaction import CompactRequest
from beckon_agent.api.responses.content import read_part
from beckon_agent.api.responses.documents import (
    ECHO,
    approval_id,
    event_of_approval,
    new_run_id,
    parse_response_id,
    run_of_item,
)
from beckon_agent.api.responses.forms import FormAnswer, event_of_input, input_id
from beckon_agent.api.responses.item_types import ITEM_TYPES, ItemTypes
from beckon_agent.api.responses.items import says_something, to_messages
from beckon_agent.api.responses.output import Item
from beckon_agent.api.responses.request import CreateRequest, check_tools
from beckon_agent.api.responses.stream import ResponseStreamer
from beckon_agent.core.model_types import Message
from beckon_agent.core.records import FINAL, NewRun, StoredCall, StoredRun
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.service import Service
from beckon_agent.store.base import Store
from beckon_contract.inputs import InputRequest, InvalidInput, next_call_id

_REQUESTS = ("mcp_approval_request", "beckon:approval_request")
_RESPONSES = ("mcp_approval_response", "beckon:approval_response")
_SHOWN_ID = 120


class ApprovalAnswer(BaseModel):
    """A decision on an approval request, or on a form; `reason` has the fields of the form as JSON."""

    approval_request_id: str
    approve: bool
    reason: str | None = Field(None, max_length=2000)

    def to_form(self, place: str) -> FormAnswer:
        """Return the answer to a form; raise `ApiError` if the reason is no JSON object."""
        if not self.approve:
            return FormAnswer(action="decline")
        try:
            content = json.loads(self.reason or "{}")
        except ValueError:
            content = None
        if not isinstance(content, dict):
            message = f"{place}.reason: must be a JSON object with the fields of the form"
            raise ApiError(400, message, code="invalid_request", param=f"{place}.reason")
        return FormAnswer(action="accept", content=content)


@dataclass(frozen=True, slots=True)
class Answers:
    """A client's decisions about the calls of one run, and forms of the run that it has filled in.

    They are followed by the `part` of the run. Without either, forms had these answers before.
    """

    run: StoredRun
    part: int
    decided: Sequence[tuple[StoredCall, ApprovalAnswer]]
    filled: Sequence[tuple[StoredCall, InputRequest]]


@dataclass(frozen=True, slots=True)
class AnsweringPart:
    """The part of a run that answers a request; the first `suspensions` of the run have ended."""

    run: StoredRun
    part: int = 1
    suspensions: int = 0


async def read_answers(
    given: str | Sequence[Item], engine: Engine, store: Store, owner: str
) -> Answers | None:
    """Return the decisions at the end of an input.

    `None` if the input ends with other items. Answers before other items are history: clients that manage
    the history themselves send it back. Raises `ApiError` for answers to approval requests or forms that this
    owner does not have, and for answers that do not fit.
    """
    answers = _trailing_answers(given)
    decided: list[tuple[StoredCall, ApprovalAnswer]] = []
    filled: list[tuple[StoredCall, InputRequest]] = []
    run: StoredRun | None = None
    for place, answer in answers:
        run_and_call = await _find_call(answer.approval_request_id, store)
        if run_and_call is not None and run is None:
            run = await engine.get(run_and_call[0])
        if run_and_call is None or run is None or run.id != run_and_call[0] or run.owner != owner:
            raise _unknown_request(place, answer)
        if event_of_input(answer.approval_request_id) is None:
            decided.append((run_and_call[1], answer))
        elif (form := _fill_form(place, answer, run_and_call[1])) is not None:
            filled.append((run_and_call[1], form))
    if run is None:
        return None
    waiting = [call for call in (await store.runs.load_past(run.id)).calls if call.wanted_approval]
    if not decided:  # forms end no part: the response of the last decisions continues
        part = 1 + len({call.step for call in waiting if call.decision is not None})
        return Answers(run, part, (), filled)
    step = max(call.step for call, _ in decided)
    _check_whole([call for call in waiting if call.step == step], decided)
    return Answers(run, 1 + len({call.step for call in waiting if call.step <= step}), decided, filled)


async def _find_call(request: str, store: Store) -> tuple[str, StoredCall] | None:
    """Return the call of an approval request or a form, and the id of its run."""
    if (event_id := event_of_input(request)) is None:
        return await store.journal.find_call(event_of_approval(request) or "")
    run_and_call = await store.journal.find_call(event_id) or await store.journal.find_call(
        next_call_id(event_id)
    )
    return run_and_call if run_and_call and run_and_call[1].input_request is not None else None


def _fill_form(place: str, answer: ApprovalAnswer, call: StoredCall) -> InputRequest | None:
    """Return a call's request with an answer to its form; `None` if the form has this very answer already.

    Raises `ApiError` if it has another one, or if the answer does not fit.
    """
    form = answer.to_form(place)
    if call.state != "input" or input_id(call.event_id) != answer.approval_request_id:
        if form.repeats(call):
            return None
        raise _decision_conflict(answer, "the form has another answer already, or waits no more")
    try:
        return form.fill_form(call)
    except InvalidInput as error:
        message = f"{place}.reason: does not fit the form: {error}"
        raise ApiError(400, message, code="invalid_request", param=f"{place}.reason") from None


async def decide_calls(
    run: StoredRun, decided: Sequence[tuple[StoredCall, ApprovalAnswer]], engine: Engine
) -> None:
    """Pass the decisions about calls of a run on to the engine.

    Raises `ApiError` if a call was already decided otherwise, or the run ended without a decision on it.
    """
    for call, answer in decided:
        if run.status in FINAL and call.decision is None:
            raise _decision_conflict(answer, f"no decision is pending: the response is {run.status}")
        decision = "approved" if answer.approve else "denied"
        if call.decision is None and call.state == "approval":
            done = await engine.decide_call(
                call.event_id,
                "approved" if answer.approve else "denied",
                by=run.owner,
                reason=answer.reason or "",
            )
            if done:
                continue
            raise _decision_conflict(answer, "another decision about this call was made at this moment")
        if call.decision != decision:
            raise _decision_conflict(answer, f"this call was {call.decision or 'ended'} already")


def _check_whole(waiting: Sequence[StoredCall], decided: Sequence[tuple[StoredCall, ApprovalAnswer]]) -> None:
    """Raise `ApiError` if an approval request is left unanswered.

    The run would keep waiting, and its client would not know.
    """
    answered = {call.event_id for call, _ in decided}
    open_ = [call for call in waiting if call.decision is None and call.event_id not in answered]
    if open_:
        names = ", ".join(approval_id(call.event_id) for call in open_)
        message = f"answer all questions of a response at once; these are left: {names}"
        raise ApiError(400, message, code="approvals_missing", param="input")


def _trailing_answers(given: str | Sequence[Item]) -> list[tuple[str, ApprovalAnswer]]:
    """Return the answers at the end of an input, each with its place."""
    answers: list[tuple[str, ApprovalAnswer]] = []
    items = [] if isinstance(given, str) else given
    for index in range(len(items) - 1, -1, -1):
        kind = items[index].get("type")
        if kind not in (*_RESPONSES, *_REQUESTS):
            break
        if kind in _RESPONSES:
            place = f"input.{index}"
            answers.append((place, read_part(ApprovalAnswer, items[index], place)))
    return answers[::-1]


def _unknown_request(place: str, answer: ApprovalAnswer) -> ApiError:
    message = f"{place}: there is no question {answer.approval_request_id[:_SHOWN_ID]!r} to answer"
    return ApiError(404, message, code="approval_request_not_found", param=place)


def _decision_conflict(answer: ApprovalAnswer, message: str) -> ApiError:
    shown = f"{answer.approval_request_id[:_SHOWN_ID]}: {message}"
    return ApiError(409, shown, code="already_decided", param="input")


FACE = "responses"
"""What runs of this face are stored under."""

"""The caller: the principal's id, empty for anonymous."""

_SHOWN = 80
_MAX_RUNS = 100


@dataclass(frozen=True, slots=True)
class ResponseCreator:
    """Turns requests into runs."""

    streamer: ResponseStreamer
    service: Service

    async def begin_response(self, body: CreateRequest, owner: str, types: ItemTypes) -> AnsweringPart:
        """Start a run, whose responses have `types`, or resume a waiting one.

        A request with answers to approval requests or forms resumes their run. Raises `ApiError`, `NoRoom`
        and `StoreUnavailable`.
        """
        body.check_support()
        engine, store = self.streamer.engine, self.streamer.store
        answers = await read_answers(body.input, engine, store, owner)
        if answers is not None:
            return await self._resume_run(answers)
        hosted = find_agent(self.service, body.model or self.service.registry.default)
        options = body.to_options()
        check_tools(options, hosted.catalogue.current.tools)
        previous = await self._previous_run(body.previous_response_id, owner)
        await self._check_conversation(body, owner)
        items = await self._resolve_references(body.input, owner)
        alone = previous is None and body.conversation_id is None
        messages = to_messages(items, alone=alone)
        if alone and not says_something(messages):
            message = "input: there is nothing to answer; send a text, or a message with the role 'user'"
            raise ApiError(400, message, code="invalid_request", param="input")
        new = NewRun(
            id=new_run_id(),
            owner=owner,
            agent=hosted.name,
            face=FACE,
            input=messages,
            request={ECHO: body.to_echo(), ITEM_TYPES: types},
            previous=previous,
            conversation=body.conversation_id,
            background=bool(body.background),
            retained=body.is_stored,
        )
        try:
            return AnsweringPart(await engine.start(Ask(new, hosted, options, options.client_tools)))
        except KeyError as error:  # deleted since it was looked for
            raise ApiError(404, f"{error} does not exist any more", code="not_found") from error

    async def _resume_run(self, answers: Answers) -> AnsweringPart:
        run, engine = answers.run, self.streamer.engine
        suspensions = 0
        if answers.filled or not answers.decided:
            # Counted before the answers: the suspension that they end is among them.
            suspensions = await self.streamer.count_suspensions(run)
            suspensions -= not answers.filled and run.status == "suspended"
        await decide_calls(run, answers.decided, engine)
        for call, form in answers.filled:
            if not await engine.answer_input(call.event_id, form):
                message = f"{input_id(call.event_id)}: another answer was given at this moment"
                raise ApiError(409, message, code="already_decided", param="input")
        return AnsweringPart(run, answers.part, suspensions)

    async def find_response(
        self, response: str, owner: str, *, param: str = "response_id"
    ) -> tuple[StoredRun, int]:
        """Return the run and the part number of a response.

        Raises `ApiError` (404) if this owner has no such response.
        """
        run_and_part = parse_response_id(response)
        run = await self.streamer.engine.get(run_and_part[0]) if run_and_part else None
        if run_and_part is None or run is None or run.owner != owner or run.face != FACE:
            raise no_response(response, param)
        return run, run_and_part[1]

    async def read_messages(self, body: CompactRequest, owner: str) -> list[Message]:
        """Return the conversation that is to be compacted. Raises `ApiError` if there is none."""
        previous, runs = await self._previous_run(body.previous_response_id, owner), self.streamer.store.runs
        messages: list[Message] = []
        if previous is not None:
            messages = [*await runs.load_messages(previous), *await runs.load_added_messages(previous)]
        items = await self._resolve_references(body.input or [], owner)
        messages += to_messages(items, alone=previous is None)
        if not messages:
            message = "input: there is nothing to compact; send items, or a 'previous_response_id'"
            raise ApiError(400, message, code="invalid_request", param="input")
        return messages

    async def _previous_run(self, response: str | None, owner: str) -> str | None:
        if response is None:
            return None
        param = "previous_response_id"
        run, _ = await self.find_response(response, owner, param=param)
        if run.status == "suspended":
            message = (
                f"{param}: the response waits; answer its mcp_approval_request items with "
                "mcp_approval_response items alone, or wait for its tools"
            )
            raise ApiError(409, message, code="response_waits", param=param)
        if run.status not in FINAL:
            message = f"{param}: the response is still in progress; wait for its end, or cancel it"
            raise ApiError(409, message, code="response_in_progress", param=param)
        return run.id

    async def _check_conversation(self, body: CreateRequest, owner: str) -> None:
        conversation_id = body.conversation_id
        if conversation_id is None:
            return
        conversation = await self.streamer.store.conversations.find(conversation_id)
        if conversation is None or conversation.owner != owner:
            message = f"there is no conversation {conversation_id[:_SHOWN]!r}"
            raise ApiError(404, message, code="conversation_not_found", param="conversation")

    async def _resolve_references(self, given: str | list[Item], owner: str) -> str | list[Item]:
        """Return the input with item references replaced by their items."""
        if isinstance(given, str):
            return given
        items_of_runs: dict[str, dict[str, Item]] = {}
        items: list[Item] = []
        for index, item in enumerate(given):
            place = f"input.{index}.id"
            items.append(
                await self._find_item(item, items_of_runs, owner, place) if _is_reference(item) else item
            )
        return items

    async def _find_item(
        self, reference: Item, items_of_runs: dict[str, dict[str, Item]], owner: str, place: str
    ) -> Item:
        """Return the item of a reference. `items_of_runs` caches the items of runs by their ids."""
        item_id = str(reference["id"])
        run_id = run_of_item(item_id)
        if run_id is not None and run_id not in items_of_runs:
            if len(items_of_runs) >= _MAX_RUNS:
                message = f"{place}: items of at most {_MAX_RUNS} responses may be named; send the rest"
                raise ApiError(400, message, code="too_many_references", param=place)
            items_of_runs[run_id] = await self._read_items(run_id, owner, place)
        item = items_of_runs.get(run_id or "", {}).get(item_id)
        if item is None:
            message = f"{place}: there is no item {item_id[:_SHOWN]!r}; send the item itself"
            raise ApiError(404, message, code="item_not_found", param=place)
        return item

    async def _read_items(self, run_id: str, owner: str, place: str) -> dict[str, Item]:
        """Return the items of all parts of a run, by their ids."""
        run, part = await self.find_response(run_id, owner, param=place)
        items: dict[str, Item] = {}
        while (document := await self.streamer.read_state(run, part, "openai")) is not None:
            items |= {item["id"]: dict(item) for item in document["output"]}
            part += 1
        return items


def no_response(response: str, param: str = "response_id") -> ApiError:
    """Return the error for an unknown response (404)."""
    message = f"there is no response {response[:_SHOWN]!r}: it was not stored, or was deleted"
    return ApiError(404, message, code="response_not_found", param=param)


def _is_reference(item: Item) -> bool:
    kind = item.get("type")
    return "id" in item and (kind == "item_reference" or (kind is None and "role" not in item))
