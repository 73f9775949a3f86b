"""Validation of request parts with several possible types.

An error names the place of the part.
"""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from beckon_agent.api.http.errors import ApiError

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], value: object, place: str) -> Model:
    """Validate a value as a model.

    Raises `ApiError` with the first error and its place.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found: Any = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([place, *(str(part) for part in found["loc"])])
        said = str(found["msg"]).removeprefix("Value error, ")
        raise ApiError(400, f"{where}: {said}", code="invalid_request", param=where) from error


def unsupported(place: str, message: str) -> ApiError:
    """Return the error for an unsupported feature of the API."""
    return ApiError(400, f"{place}: {message}", code="unsupported_value", param=place)
