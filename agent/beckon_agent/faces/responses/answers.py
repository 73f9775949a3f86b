"""Answers of this face: documents, and what the engine and the store raise."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from beckon_agent.faces.openai_errors import FaceError, told
from beckon_agent.model import wire
from beckon_agent.policy.limits import LimitReached
from beckon_agent.service import NoRoom
from beckon_agent.store.base import StoreUnavailable

PageSize = Annotated[int, Query(ge=1, le=100)]
"""How many items a page of a list has."""


@contextmanager
def answered() -> Iterator[None]:
    """Turn what the engine and the store raise into answers of this face."""
    try:
        yield
    except (NoRoom, LimitReached, StoreUnavailable) as error:
        raise as_face_error(error) from error


def as_face_error(error: Exception) -> FaceError:
    """Return what a client is told of something that the engine or the store raised."""
    if isinstance(error, StoreUnavailable):
        message = "the store of the agent does not answer; ask again shortly"
        return FaceError(503, message, code="store_unavailable")
    return told(error)


def as_json(document: dict[str, Any]) -> Response:
    """Return a document as an answer."""
    return Response(wire.dumps(document), media_type="application/json")
