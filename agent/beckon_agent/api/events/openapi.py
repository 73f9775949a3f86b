"""The OpenAPI description of an event, in structured or binary mode."""

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from beckon_agent.api.http.openapi import reference

NonEmpty = Annotated[str, Field(min_length=1)]


class StructuredEvent(TypedDict):
    """A CloudEvent in structured mode; `beckon_contract.events` reads it."""

    specversion: Literal["1.0"]
    id: NonEmpty
    source: Annotated[NonEmpty, Field(json_schema_extra={"format": "uri-reference"})]
    type: NonEmpty
    subject: NotRequired[NonEmpty | None]
    time: NotRequired[datetime | None]
    datacontenttype: NotRequired[NonEmpty | None]
    data: NotRequired[
        Annotated[
            Any, Field(description="A question as a string, an object with one in `question`, or anything.")
        ]
    ]


EVENT: dict[str, Any] = {
    "parameters": [
        {
            "name": f"ce-{name}",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},  # nobody looks at it in structured mode
            "description": f"The attribute `{name}` in binary mode, in which it is required.",
        }
        for name in ("specversion", "id", "source", "type")
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/cloudevents+json": {"schema": reference(StructuredEvent)},
            "application/json": {"schema": {}},
            "text/plain": {"schema": {"type": "string"}},
        },
    },
}
"""For a route's `openapi_extra`."""
