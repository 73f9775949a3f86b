"""Reading a part of a request that may be of many kinds, with an error that names the place."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from beckon_agent.api.http.errors import ApiError

Model = TypeVar("Model", bound=BaseModel)


def read(model: type[Model], value: object, place: str) -> Model:
    """Return the value as a model; raise `ApiError` with the first thing that is wrong and its place."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found: Any = error.errors(include_input=False, include_url=False)[0]
        where = ".".join([place, *(str(part) for part in found["loc"])])
        said = str(found["msg"]).removeprefix("Value error, ")
        raise ApiError(400, f"{where}: {said}", code="invalid_request", param=where) from error


def unsupported(place: str, message: str) -> ApiError:
    """Return the refusal of something that the API has and this agent has not."""
    return ApiError(400, f"{place}: {message}", code="unsupported_value", param=place)
