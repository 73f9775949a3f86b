"""The tool of the walk, whose effects are counted, and the model that calls it twice side by side.

Both serve from the test's own loop, and outlive every agent.
"""

import json
import secrets
from collections import Counter
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_tools import Hints, tool
from tests.agent.scripted_model import calls, chunk, fragment, sse
from tests.e2e.crash.gates import GATES

EFFECTS: Counter[tuple[str, str]] = Counter()
"""How often each mark of each run was made."""

DELIVERIES: Counter[str] = Counter()
"""How often each call came to the tool, by the id of its event."""

QUESTIONS: Counter[tuple[str, int]] = Counter()
"""The number of requests to the model for each turn of each run."""

PLACES = ("left", "right")
PLAIN = "plain"
"""How the names of runs begin that call the service without the SDK."""

REQUEST, HALF = "the model has the request", "the model has said half"
CALLED, DONE = "the tool is called", "the tool is done"


@tool(type="crash.mark", hints=Hints(idempotent=True))
async def mark(run: str, place: str) -> str:
    """Make a mark that can be counted."""
    await GATES.pass_by(CALLED, run)
    EFFECTS[run, place] += 1
    await GATES.pass_by(DONE, run)
    return f"{place} of {run}"


async def plain(scope: Scope, receive: Receive, send: Send) -> None:
    """Make a mark, and reply with an event: a service that knows no SDK, nor a call that it had before."""
    request = Request(scope, receive)
    call = json.loads(await request.body())
    run, place = call["run"], call["place"]
    EFFECTS[run, place] += 1
    await GATES.pass_by(CALLED, run)
    attributes = {"specversion": "1.0", "id": secrets.token_hex(8), "source": "/plain", "type": "plain.reply"}
    token = request.headers["ce-correlationid"]
    headers = {f"ce-{name}": value for name, value in {**attributes, "replyid": token}.items()}
    await JSONResponse(f"{place} of {run}", headers=headers)(scope, receive, send)


def counted(tool: ASGIApp) -> ASGIApp:
    """Return the tool with its deliveries counted."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        for name, value in scope.get("headers", ()):
            DELIVERIES[value.decode()] += name == b"ce-id"
        await tool(scope, receive, send)

    return serve


def answer(run: str) -> str:
    """Return what the model says where both calls went well."""
    return f"They are {', '.join(f'{place} of {run}' for place in PLACES)}."


async def model(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a conversation by what it holds, so that a repeated question has the same answer."""
    request = Request(scope, receive)
    messages = json.loads(await request.body())["messages"]
    run = next(message["content"] for message in messages if message["role"] == "user")
    shown = [message["content"] for message in messages if message["role"] == "tool"]
    turn = 2 if shown else 1
    QUESTIONS[run, turn] += 1
    await GATES.pass_by(f"{REQUEST} {turn}", run)
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]}
    )
    begun, rest = _second(shown) if shown else _first(run)
    await _send(send, begun)
    await GATES.pass_by(f"{HALF} {turn}", run)
    await _send(send, *rest, chunk(finish="stop" if shown else "tool_calls"))
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def _first(run: str) -> tuple[object, list[object]]:
    name = "crash_plain" if run.startswith(PLAIN) else "crash_mark"
    sent = [
        calls(fragment(number, f"call_{number}", name, json.dumps({"run": run, "place": place})))
        for number, place in enumerate(PLACES)
    ]
    return chunk({"content": "Let me "}), [chunk({"content": "see."}), *sent]


def _second(shown: list[str]) -> tuple[object, list[object]]:
    return chunk({"content": "They are "}), [chunk({"content": f"{', '.join(shown)}."})]


async def _send(send: Send, *payloads: Any) -> None:
    for payload in payloads:
        await send({"type": "http.response.body", "body": sse(payload, done=False), "more_body": True})
