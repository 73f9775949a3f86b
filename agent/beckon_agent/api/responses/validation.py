"""Validation of request parts with several possible types.

An error names the place of the part.
"""

from typing import Any, TypeVar

from pydantic import BaseModel, GetJsonSchemaHandler, TypeAdapter, ValidationError
from pydantic.json_schema import JsonSchemaValue

from beckon_agent.api.http.errors import ApiError

Model = TypeVar("Model", bound=BaseModel)


class SchemaOf:
    """Describes a value that is validated later by the schema of another type."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def __get_pydantic_json_schema__(self, _: object, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the schema; the other type costs nothing before."""
        return handler(TypeAdapter(self._kind).core_schema)


def read_part(model: type[Model], value: object, place: str) -> Model:
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


def unsupported_error(place: str, message: str) -> ApiError:
    """Return the error for an unsupported feature of the API."""
    return ApiError(400, f"{place}: {message}", code="unsupported_value", param=place)
