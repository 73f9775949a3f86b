"""JSON answers, and the OpenAPI description made from their types.

A route says by its return type what it answers: `JsonResponse[Document]`, `EventStream`, or both. mypy
compares that with the document the route builds. The schemas are made from it when `/openapi.json` is
requested for the first time, so neither the start nor an answer pays for them.
"""

from collections.abc import Iterator
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from starlette.responses import Response
from typing_extensions import TypedDict

from beckon_agent.api.http.streaming import EventStream
from beckon_agent.core import json_values

Document = TypeVar("Document")

Answers = dict[int | str, dict[str, Any]]
"""What FastAPI takes as `responses`."""

_COMPONENTS = "#/components/schemas/"
_JSON = "application/json"
_EVENT = {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "string"}}}
# Server-sent events, each described as OpenAPI 3.2 does it: 3.1 has no word for them.
_STREAM = {EventStream.media_type: {"itemSchema": _EVENT}}

_BEARER = {"type": "http", "scheme": "bearer", "description": "An API key, or a token of the issuer."}

_referenced: dict[str, Any] = {}  # by the names in the references


class JsonResponse(Response, Generic[Document]):
    """An answer with a JSON document of the type `Document`."""

    media_type = _JSON

    def __init__(self, document: Document, status_code: int = 200) -> None:
        super().__init__(json_values.to_json(document), status_code)


class PageFields(TypedDict):
    """The members of a page beside its `data`."""

    object: Literal["list"]
    first_id: str
    last_id: str
    has_more: bool


class ListPage(PageFields, Generic[Document]):
    """One page of a list, in OpenAI's shape."""

    data: list[Document]


def schema_reference(kind: type) -> dict[str, Any]:
    """Return a reference to the schema of a type, for a description by hand."""
    known = _referenced.setdefault(kind.__name__, kind)
    if known is not kind:
        raise ValueError(f"two types of the description have the name {kind.__name__}")
    return {"$ref": f"{_COMPONENTS}{kind.__name__}"}


def describe_errors(kind: type, media_type: str, **meanings: str) -> Answers:
    """Return the description of error answers with documents of one type.

    Each argument is a description; its name is an underscore and the status.
    """
    content = {media_type: {"schema": schema_reference(kind)}}
    return {
        name.removeprefix("_"): {"description": meaning, "content": content}
        for name, meaning in meanings.items()
    }


def describe_answer(meaning: str, **links: dict[str, Any]) -> Answers:
    """Return the description of a 200; its content is the return type of the route."""
    return {200: {"description": meaning, **({"links": links} if links else {})}}


def describe_operation(name: str, *answers: Answers) -> dict[str, Any]:
    """Return the arguments of a route's decorator that describe an operation.

    FastAPI is to make nothing of the return type: an answer is sent as it was built.
    """
    responses: Answers = {}
    for described in answers:
        responses |= described
    return {"operation_id": name, "response_model": None, "responses": responses}


def link_to(operation: str, **parameters: str) -> dict[str, Any]:
    """Return a link to an operation.

    `parameters` are the places of its parameters in this answer or request.
    """
    return {"operationId": operation, "parameters": parameters}


def describe_app(app: FastAPI) -> None:
    """Complete an application's OpenAPI description with answers and authentication."""
    described = app.openapi
    complete: dict[str, Any] = {}

    def complete_description() -> dict[str, Any]:
        if not complete:
            complete.update(described())
            _add_answers(app, complete)
            complete["components"]["securitySchemes"] = {"bearer": _BEARER}
            complete["security"] = [{"bearer": []}, {}]  # a service on loopback may let in anyone
        return complete

    app.openapi = complete_description  # type: ignore[method-assign]  # FastAPI's own way to extend the description


class _AnswerSchemas(GenerateJsonSchema):
    """Schemas of what is sent: a field of a dataclass is there, with a default or without."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return field["type"] == "dataclass-field" or super().field_is_required(field, total)


def _add_answers(app: FastAPI, document: dict[str, Any]) -> None:
    """Add the content of each route's answers, and the schemas of all types."""
    contents: list[tuple[dict[str, Any], Any]] = []
    for route in iter_route_contexts(app.routes):
        methods = document["paths"].get(route.path_format, {})
        for method in (route.methods or set()) if methods else ():
            contents += _json_contents(route.endpoint, methods[method.lower()]["responses"])
    mode: JsonSchemaMode = "serialization"
    kinds = [kind for _, kind in contents] + list(_referenced.values())
    inputs = [(index, mode, TypeAdapter(kind)) for index, kind in enumerate(kinds)]
    schemas, shared = TypeAdapter.json_schemas(
        inputs, ref_template=f"{_COMPONENTS}{{model}}", schema_generator=_AnswerSchemas
    )
    for index, (content, _) in enumerate(contents):
        content["schema"] = schemas[index, mode]
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for name, schema in shared.get("$defs", {}).items():
        if components.setdefault(name, schema) != schema:
            raise ValueError(f"two types of the description have the name {name}")


def _json_contents(endpoint: Any, responses: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield the JSON contents of a route's answers, to be filled, and their types.

    Streams are described at once. FastAPI's guess of JSON is removed where there is none.
    """
    kinds = list(_union_members(endpoint.__annotations__.get("return")))
    documents = [get_args(kind)[0] for kind in kinds if get_origin(kind) is JsonResponse]
    for status, described in responses.items():
        content = described.setdefault("content", {})
        if content.get(_JSON) in ({}, {"schema": {}}):
            del content[_JSON]
            for document in documents:
                yield content.setdefault(_JSON, {}), document
        if status == "200" and EventStream in kinds:
            content.update(_STREAM)
        if not content:
            del described["content"]


def _union_members(annotation: Any) -> Iterator[Any]:
    """Yield the members of a union, or the type itself."""
    if get_origin(annotation) is None or get_origin(annotation) is JsonResponse:
        yield annotation
        return
    for member in get_args(annotation):
        yield from _union_members(member)
