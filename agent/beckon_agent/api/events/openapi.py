"""The OpenAPI description of an event, in structured or binary mode."""

from typing import Any

from beckon_agent.api.http.openapi import maybe

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "specversion": {"type": "string", "enum": ["1.0"]},
    "id": _TEXT,
    "source": {**_TEXT, "format": "uri-reference"},
    "type": _TEXT,
}
_STRUCTURED = {
    "type": "object",
    "required": list(_ATTRIBUTES),
    "properties": {
        **_ATTRIBUTES,
        "subject": maybe(_TEXT),
        "time": maybe({"type": "string", "format": "date-time"}),
        "datacontenttype": maybe(_TEXT),
        "data": {"description": "A question as a string, an object with one in `question`, or anything."},
    },
}
EVENT: dict[str, Any] = {
    "parameters": [
        {
            "name": f"ce-{name}",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},  # nobody looks at it in structured mode
            "description": f"The attribute `{name}` in binary mode, in which it is required.",
        }
        for name in _ATTRIBUTES
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/cloudevents+json": {"schema": _STRUCTURED},
            "application/json": {"schema": {}},
            "text/plain": {"schema": {"type": "string"}},
        },
    },
}
"""For a route's `openapi_extra`."""
