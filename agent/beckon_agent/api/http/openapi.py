"""Pieces of the OpenAPI description: answers, their schemas, and links to the next request."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI

Answers = dict[int | str, dict[str, Any]]
"""What FastAPI takes as `responses`."""

_EVENT = {"type": "object", "properties": {"event": {"type": "string"}, "data": {"type": "string"}}}
STREAM = {"text/event-stream": {"itemSchema": _EVENT}}
"""Server-sent events, each described as OpenAPI 3.2 does it: 3.1 has no word for them."""


def obj(**members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with at least these members."""
    return {"type": "object", "required": list(members), "properties": dict(members)}


def listed(member: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", "items": dict(member)}


def maybe(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a nullable value."""
    return {"anyOf": [dict(schema), {"type": "null"}]}


def word(*words: str) -> dict[str, Any]:
    """Return the schema of a string, limited to `words` if there are any."""
    return {"type": "string", "enum": list(words)} if words else {"type": "string"}


NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
YES_OR_NO = {"type": "boolean"}
ANY: dict[str, Any] = {}


def answer(
    meaning: str, schema: Mapping[str, Any], *, streams: bool = False, **links: dict[str, Any]
) -> Answers:
    """Return the description of a 200 with a JSON body.

    With `streams`, it may be server-sent events as well.
    """
    content = {"application/json": {"schema": dict(schema)}, **(STREAM if streams else {})}
    described: dict[str, Any] = {"description": meaning, "content": content}
    return {200: {**described, "links": links} if links else described}


def describe_authentication(app: FastAPI) -> None:
    """Add optional bearer authentication to an application's OpenAPI description."""
    described = app.openapi
    scheme = {"type": "http", "scheme": "bearer", "description": "An API key, or a token of the issuer."}

    def openapi() -> dict[str, Any]:
        document = described()
        document["components"] = {**document.get("components", {}), "securitySchemes": {"bearer": scheme}}
        document["security"] = [{"bearer": []}, {}]  # a service on loopback may let in whoever is there
        return document

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend the description


def leads_to(operation: str, **parameters: str) -> dict[str, Any]:
    """Return a link to an operation.

    `parameters` are the places of its parameters in this answer or request.
    """
    return {"operationId": operation, "parameters": parameters}
