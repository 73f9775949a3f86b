"""Services with FastAPI and the CloudEvents SDK, and some without an SDK: one path for each."""

import os
from collections.abc import Mapping

import uvicorn
from cloudevents.core.bindings.http import (
    HTTPMessage,
    from_http_event,
    to_binary_event,
    to_structured_event,
)
from cloudevents.core.v1.event import CloudEvent
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel

CORE = frozenset(("id", "source", "type", "specversion", "time", "subject", "datacontenttype", "dataschema"))

app = FastAPI()


class Arguments(BaseModel):
    """The arguments of a call."""

    name: str


async def read_call(request: Request) -> tuple[CloudEvent, str]:
    """Return the call and the greeting that it wants."""
    call = from_http_event(HTTPMessage(dict(request.headers), await request.body()))
    assert isinstance(call, CloudEvent)
    return call, f"Hello {Arguments.model_validate(call.get_data()).name}"


def reply_to(call: CloudEvent, greeting: str, extensions: Mapping[str, object]) -> CloudEvent:
    """Return the answer of a service: an event of its own type."""
    attributes = {
        "source": "/services/fastapi",
        "type": f"{call.get_type()}.done",
        "datacontenttype": "application/json",
        **extensions,
    }
    return CloudEvent(attributes, {"greeting": greeting})


def to_response(message: HTTPMessage) -> Response:
    """Return an event as the response of FastAPI."""
    return Response(message.body, headers=message.headers)


@app.post("/binary")
async def answer_binary(request: Request) -> Response:
    """Answer in binary mode, without any attribute of the call."""
    return to_response(to_binary_event(reply_to(*await read_call(request), {})))


@app.post("/binary-replyid")
async def answer_binary_with_reply_id(request: Request) -> Response:
    """Answer in binary mode, with the attribute that Beckon asks for."""
    call, greeting = await read_call(request)
    mark = {"replyid": call.get_extension("correlationid")}
    return to_response(to_binary_event(reply_to(call, greeting, mark)))


@app.post("/structured")
async def answer_structured(request: Request) -> Response:
    """Answer in structured mode, without any attribute of the call."""
    return to_response(to_structured_event(reply_to(*await read_call(request), {})))


@app.post("/structured-replyid")
async def answer_structured_with_reply_id(request: Request) -> Response:
    """Answer in structured mode, with the attribute that Beckon asks for."""
    call, greeting = await read_call(request)
    mark = {"replyid": call.get_extension("correlationid")}
    return to_response(to_structured_event(reply_to(call, greeting, mark)))


@app.post("/copying")
async def answer_with_all_extensions(request: Request) -> Response:
    """Answer with every extension attribute of the call."""
    call, greeting = await read_call(request)
    copied = {name: value for name, value in call.get_attributes().items() if name not in CORE}
    return to_response(to_binary_event(reply_to(call, greeting, copied)))


@app.post("/responseid")
async def answer_with_response_id(request: Request) -> Response:
    """Answer as the prototype in Knative's blog: `responseid` is the id of the call."""
    call, greeting = await read_call(request)
    return to_response(to_binary_event(reply_to(call, greeting, {"responseid": call.get_id()})))


@app.post("/json")
async def answer_json(arguments: Arguments) -> JSONResponse:
    """Answer as any HTTP API: no event, JSON."""
    return JSONResponse({"greeting": f"Hello {arguments.name}"})


@app.post("/text")
async def answer_text(arguments: Arguments) -> PlainTextResponse:
    """Answer with a text."""
    return PlainTextResponse(f"Hello {arguments.name}")


@app.post("/202", status_code=202)
@app.post("/204", status_code=204)
async def answer_nothing(arguments: Arguments) -> Response:
    """Do the work, and answer without a body."""
    assert arguments.name
    return Response(status_code=204)


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
