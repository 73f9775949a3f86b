"""JSON answers, and API errors for failures of engine and store."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from beckon_agent.api.http.errors import EXPECTED, to_api_error
from beckon_agent.core import json_values

PageSize = Annotated[int, Query(ge=1, le=100)]
"""How many items a page of a list has."""


@contextmanager
def api_errors() -> Iterator[None]:
    """Turn expected errors of the engine and the store into `ApiError`."""
    try:
        yield
    except EXPECTED as error:
        raise to_api_error(error) from error


def as_json(document: dict[str, Any]) -> Response:
    """Return a document as an answer."""
    return Response(json_values.to_json(document), media_type="application/json")
