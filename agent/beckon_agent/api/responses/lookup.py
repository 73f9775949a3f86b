"""Ids of responses, items and approvals, and the runs and pages behind them.

Each id contains the id of its run, or of its call's event. A run that waits for approvals is several
responses: each ends with its approval requests, and the one after the answers is the run's next part.
"""

import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeVar

from fastapi import Query
from typing_extensions import TypedDict

from beckon_agent.api.http.errors import STORE_UNAVAILABLE, ProblemError
from beckon_agent.api.http.openapi import ListPage
from beckon_agent.core.records import StoredRun
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_runtime.problem import Problem

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


def run_and_part(response: str) -> tuple[str, int] | None:
    """Return the run id and part number of a response id.

    `None` if it is no valid response id.
    """
    found = _RESPONSE.fullmatch(response)
    return (found[1], int(found[2] or 1)) if found else None


def item_id(kind: str, run_id: str, number: int) -> str:
    """Return the id of an item by its number in a run.

    It is the same in every stream of the run.
    """
    return f"{kind}_{run_id.removeprefix(_PREFIX)}_{number}"


def run_of_item(item: str) -> str | None:
    """Return the run id of an output item.

    `None` if the id is no output item's.
    """
    found = _ITEM.fullmatch(item)
    return f"{_PREFIX}{found[1]}" if found else None


def approval_id(event_id: str) -> str:
    """Return the approval request id for a call's event id."""
    return f"{_APPROVAL}{event_id}"


def event_of_approval(approval: str) -> str | None:
    """Return the call's event id for an approval request id.

    `None` if it is no approval request id.
    """
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
    response = run_and_part(named)
    run = await store.runs.get(response[0] if response else named)
    if run is None or run.owner != owner:
        detail = f"there is no run {named[:_SHOWN]!r}: it was not stored, or was deleted"
        raise ProblemError(Problem(404, "unknown-run", "Unknown run", detail))
    return run


def list_page(found: Sequence[Record], limit: int, document: Callable[[Record], Listed]) -> ListPage[Listed]:
    """Return one page of a list in OpenAI's shape.

    `found` has one item more than `limit` if there are more.
    """
    shown = [document(item) for item in found[:limit]]
    return {
        "object": "list",
        "data": shown,
        "first_id": shown[0]["id"] if shown else "",
        "last_id": shown[-1]["id"] if shown else "",
        "has_more": len(found) > limit,
    }
