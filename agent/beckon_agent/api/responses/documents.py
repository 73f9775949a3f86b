"""The response object of a stored run, with its output so far."""

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, TypeVar, cast

from fastapi import Query
from typing_extensions import TypedDict

from beckon_agent.api.http.errors import STORE_UNAVAILABLE
from beckon_agent.api.http.openapi import ListPage
from beckon_agent.api.responses.output import OutputItem
from beckon_agent.core.model_types import Usage
from beckon_agent.core.records import RunStatus, StoredRun
from beckon_agent.core.run_events import Ending
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_runtime.problem import Problem, ProblemError

_PREFIX = "resp_"
_RESPONSE = re.compile(r"(resp_[0-9a-f]{32})(?:_([2-9]|[1-9][0-9]{1,3}))?")
_ITEM = re.compile(r"(?:msg|rs|mcp|fc)_([0-9a-f]{32})_[0-9]{1,6}")
_APPROVAL = "mcpr_"


def new_run_id() -> str:
    """Return a new run id, also the id of its first part."""
    return f"{_PREFIX}{secrets.token_hex(16)}"


def response_id(run_id: str, part: int) -> str:
    """Return the id of a part of a run, counted from 1."""
    return run_id if part == 1 else f"{run_id}_{part}"


def parse_response_id(response: str) -> tuple[str, int] | None:
    """Return the run id and part number of a response id. `None` if it is no valid response id."""
    match = _RESPONSE.fullmatch(response)
    return (match[1], int(match[2] or 1)) if match else None


def item_id(kind: str, run_id: str, number: int) -> str:
    """Return the id of an item by its number in a run. It is the same in every stream of the run."""
    return f"{kind}_{run_id.removeprefix(_PREFIX)}_{number}"


def run_of_item(item: str) -> str | None:
    """Return the run id of an output item. `None` if the id is no output item's."""
    match = _ITEM.fullmatch(item)
    return f"{_PREFIX}{match[1]}" if match else None


def approval_id(event_id: str) -> str:
    """Return the approval request id for a call's event id."""
    return f"{_APPROVAL}{event_id}"


def event_of_approval(approval: str) -> str | None:
    """Return the call's event id for an approval request id. `None` if it is no approval request id."""
    return approval.removeprefix(_APPROVAL) if approval.startswith(_APPROVAL) else None


class _HasId(TypedDict):
    id: str


Record = TypeVar("Record")
Listed = TypeVar("Listed", bound=_HasId)

_SHOWN = 80

PageSize = Annotated[int, Query(ge=1, le=100, description="How many are wanted at most.")]
ItemsPerPage = Annotated[int, Query(ge=1, le=100)]
After = Annotated[
    str | None, Query(max_length=300, description="The list goes on behind the one of this id: `last_id`.")
]


@contextmanager
def store_problems() -> Iterator[None]:
    """Turn `StoreUnavailable` into a problem document (503)."""
    try:
        yield
    except StoreUnavailable as error:
        raise ProblemError(
            Problem(503, "store-unavailable", "Store unavailable", STORE_UNAVAILABLE)
        ) from error


@contextmanager
def page_problems() -> Iterator[None]:
    """Do as `stored`, and report an unknown cursor.

    The store raises `KeyError` for it; the answer is a problem document (400).
    """
    try:
        with store_problems():
            yield
    except KeyError as error:
        detail = f"after: there is no {str(error.args[0])[:_SHOWN]!r} in this list; begin again without it"
        raise ProblemError(Problem(400, "unknown-cursor", "Unknown cursor", detail)) from None


async def find_run(store: Store, named: str, owner: str) -> StoredRun:
    """Return the run of a run id or response id.

    Raises `ProblemError` (404) if there is none, or it belongs to another owner.
    """
    response = parse_response_id(named)
    run = await store.runs.get(response[0] if response else named)
    if run is None or run.owner != owner:
        detail = f"there is no run {named[:_SHOWN]!r}: it was not stored, or was deleted"
        raise ProblemError(Problem(404, "unknown-run", "Unknown run", detail))
    return run


def list_page(
    records: Sequence[Record], limit: int, document: Callable[[Record], Listed]
) -> ListPage[Listed]:
    """Return one page of a list in OpenAI's shape.

    `records` has one item more than `limit` if there are more.
    """
    shown = [document(item) for item in records[:limit]]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else "",
        "last_id": shown[-1]["id"] if shown else "",
        "has_more": len(records) > limit,
    }


Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]

Reason = Literal["max_output_tokens", "content_filter", "max_messages"]
ErrorCode = Literal["invalid_prompt", "rate_limit_exceeded", "server_error"]

ECHO = "response"
"""The member of a run's `request` that holds its `RequestEcho`."""


class ResponseText(TypedDict):
    """The request's options for the text of the answer."""

    format: dict[str, Any]
    verbosity: NotRequired[Literal["low", "medium", "high"]]


class ResponseReasoning(TypedDict):
    """The request's options for the model's reasoning."""

    effort: str | None
    summary: str | None


class RequestEcho(TypedDict):
    """The fields of a request repeated in its responses."""

    instructions: str | None
    metadata: dict[str, str]
    previous_response_id: str | None
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: int
    max_output_tokens: int | None
    max_tool_calls: int | None
    parallel_tool_calls: bool
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]]
    text: ResponseText
    reasoning: ResponseReasoning
    truncation: Literal["auto", "disabled"]
    service_tier: str
    user: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None


class ResponseError(TypedDict):
    """The failure of a response."""

    code: ErrorCode
    message: str


class IncompleteDetails(TypedDict):
    """The limit that ended a response; `ending` is set for an answer that broke off."""

    reason: Reason
    ending: NotRequired[Literal["incomplete"]]


class CachedTokens(TypedDict):
    """The cached part of the input."""

    cached_tokens: int
    cache_write_tokens: int


class ReasoningTokens(TypedDict):
    """The reasoning part of the output."""

    reasoning_tokens: int


class ResponseUsage(TypedDict):
    """The tokens used by a response."""

    input_tokens: int
    input_tokens_details: CachedTokens
    output_tokens: int
    output_tokens_details: ReasoningTokens
    total_tokens: int


class ConversationId(TypedDict):
    """The conversation of a response."""

    id: str


class ResponseDocument(RequestEcho):
    """A response of Open Responses."""

    id: str
    object: Literal["response"]
    created_at: int
    status: Status
    completed_at: int | None
    error: ResponseError | None
    incomplete_details: IncompleteDetails | None
    model: str
    output: list[OutputItem]
    usage: ResponseUsage | None
    background: bool
    store: bool
    conversation: ConversationId | None


class DeletedResponse(TypedDict):
    """The answer to the deletion of a response."""

    id: str
    object: Literal["response"]
    deleted: bool


_REASONS: dict[Ending, Reason] = {
    "length": "max_output_tokens",
    "token_limit": "max_output_tokens",
    "content_filter": "content_filter",
    # The API has no word for the limits of a loop: this one is the nearest, and the text says which.
    "step_limit": "max_messages",
    "time_limit": "max_messages",
    # Nor for an answer that the model's server did not bring to its end: `ending` says that beside it.
    "incomplete": "max_output_tokens",
}
_ERROR_CODES: dict[str, ErrorCode] = {
    "context_length_exceeded": "invalid_prompt",
    "field_not_supported": "invalid_prompt",
    "insufficient_quota": "rate_limit_exceeded",
    "invalid_prompt": "invalid_prompt",
    "overloaded": "rate_limit_exceeded",
    "rate_limit_exceeded": "rate_limit_exceeded",
    "unsupported_content": "invalid_prompt",
}


@dataclass(frozen=True, slots=True)
class State:
    """The state of a response; `error` has the members `code` and `message`."""

    status: Status
    ending: Ending | None = None
    usage: Usage | None = None
    error: Mapping[str, str] | None = None
    completed_at: float | None = None
    retry_after: int | None = None


def state_of_ending(ending: Ending, usage: Usage | None, ended_at: float | None) -> State:
    """Return the state of a run after completion or a limit."""
    if ending not in _REASONS:
        return State("completed", usage=usage, completed_at=ended_at)
    return State("incomplete", ending, usage)


def state_of_run(run: StoredRun, *, begun: bool) -> State:
    """Return the state of a stored run. `begun` is true if the run has published anything yet."""
    return State(_to_status(run.status, begun=begun), run.ending, run.usage, run.error, _completed_at(run))


def response_document(
    run: StoredRun, part: int, state: State, output: Sequence[OutputItem]
) -> ResponseDocument:
    """Return the response object for a part of a run."""
    document: ResponseDocument = {
        "id": response_id(run.id, part),
        "object": "response",
        "created_at": int(run.created_at),
        "status": state.status,
        "completed_at": None if state.completed_at is None else int(state.completed_at),
        "error": _to_error(state),
        "incomplete_details": _incomplete_details(state),
        "model": run.agent,
        "output": list(output),
        "usage": usage_document(state.usage),
        "background": run.background,
        "store": run.retained,
        "conversation": {"id": run.conversation} if run.conversation else None,
        **_read_echo(run),
    }
    if part > 1:
        document["previous_response_id"] = response_id(run.id, part - 1)
    return document


def _incomplete_details(state: State) -> IncompleteDetails | None:
    reason = _REASONS.get(state.ending) if state.ending and state.status == "incomplete" else None
    if reason is None:
        return None
    return {"reason": reason, "ending": "incomplete"} if state.ending == "incomplete" else {"reason": reason}


def usage_document(usage: Usage | None) -> ResponseUsage | None:
    """Return the usage in the API's words; unknown is null, not zero.

    The API requires a number for each detail: it is 0 where the model server reports none.
    """
    if usage is None:
        return None
    cached, written = (usage.prompt_details.get(name, 0) for name in ("cached_tokens", "cache_write_tokens"))
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.completion_details.get("reasoning_tokens", 0)},
        "total_tokens": usage.total_tokens,
    }


def _read_echo(run: StoredRun) -> RequestEcho:
    return cast("RequestEcho", run.request.get(ECHO) or {})


def _to_status(status: RunStatus, *, begun: bool) -> Status:
    match status:
        case "running" | "suspended":
            return "in_progress"
        case "queued":
            return "in_progress" if begun else "queued"
        case _:
            return status


def _completed_at(run: StoredRun) -> float | None:
    return run.ended_at if run.status == "completed" else None


def _to_error(state: State) -> ResponseError | None:
    if state.status != "failed" or state.error is None:
        return None
    code = _ERROR_CODES.get(state.error.get("code", ""), "server_error")
    return {"code": code, "message": state.error.get("message", "the run failed")}
