"""Shared helpers of the routes: finding runs, list pages, store errors."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, TypeVar

from fastapi import Query
from typing_extensions import TypedDict

from beckon_agent.api.http.errors import STORE_UNAVAILABLE, ProblemError
from beckon_agent.api.http.openapi import ListPage
from beckon_agent.api.responses.ids import run_and_part
from beckon_agent.core.records import StoredRun
from beckon_agent.store.base import Store, StoreUnavailable
from beckon_runtime.problem import Problem


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
