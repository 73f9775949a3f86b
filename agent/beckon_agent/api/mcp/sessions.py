"""The sessions of clients before 2026-07-28.

The id of a session ends with those capabilities of its client that matter here. Requests of tools are sent
on the stream of their call, and any replica takes the answers. Only the level of log messages is kept here.
"""

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson
from starlette.types import Message, Send

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.mcp.stored_calls import is_slow
from beckon_agent.core.json_values import as_mapping
from beckon_contract.inputs import FORM, Method

SESSION_HEADER = "mcp-session-id"
LOGGED_AT = ("debug", "info")
"""The levels at which a client gets the messages of reports, which are of the level `info`."""

_MOST_LOGGED = 10_000  # sessions

_METHODS: Mapping[str, Method] = {"forms": FORM, "sampling": "sampling/createMessage", "roots": "roots/list"}
"""The capabilities in an id, and the methods of the requests that they allow."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The session and answer type of a message.

    `begins` is true if it begins a session, `streams` if it is answered by a stream. JSON takes half the
    time, and clients limit it less; only a stream can report progress, stay alive, and send a request.
    `capabilities` are those of a client that begins a session, `calls` is true if the message calls a tool,
    which may request input. `answer` is the message if it is the answer to a request of ours.
    """

    begins: bool
    streams: bool
    capabilities: Sequence[str] = ()
    calls: bool = False
    answer: Mapping[str, object] | None = None


def read_opening(body: bytes, hosted: AgentHandle) -> Opening:
    """Read the session and answer type from a body. Any body is accepted: the SDK refuses a wrong one."""
    try:
        message = as_mapping(orjson.loads(body))
    except orjson.JSONDecodeError:
        message = {}
    method = message.get("method")
    params = as_mapping(message.get("params"))
    if method == "initialize":
        return Opening(True, False, capabilities=_read_capabilities(as_mapping(params.get("capabilities"))))
    if method is None and {"result", "error"} & message.keys():
        return Opening(False, False, answer=message)
    called = params if method == "tools/call" else {}
    reported = "progressToken" in as_mapping(called.get("_meta"))
    name = called.get("name")
    known = isinstance(name, str) and name in hosted.catalogue.current.tools
    return Opening(False, reported or is_slow(name, hosted), calls=known)


def _read_capabilities(declared: Mapping[str, object]) -> list[str]:
    """Return those capabilities that are part of a session's id."""
    form = declared.get("elicitation")
    # Before 2025-11-25 there was no other mode than a form.
    shows_forms = isinstance(form, dict) and ("form" in form or "url" not in form)
    return [
        name
        for name in _METHODS
        if (shows_forms if name == "forms" else isinstance(declared.get(name), dict))
    ]


def methods_of_session(session: str) -> frozenset[str]:
    """Return the methods of the input requests that the client of a session answers."""
    return frozenset(_METHODS[part] for part in session.split("-")[1:] if part in _METHODS)


class LoggingSessions:
    """The sessions whose clients requested log messages at the level `info` or below: the last 10,000.

    They are known to this process alone. So at another replica, a client gets the messages of its calls only
    if it sends `logging/setLevel` there, too.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[str, None] = OrderedDict()

    def set_level(self, session: str, level: str) -> None:
        """Take the level of a session."""
        self._sessions.pop(session, None)
        if level in LOGGED_AT:
            self._sessions[session] = None
        if len(self._sessions) > _MOST_LOGGED:
            self._sessions.popitem(last=False)

    def __contains__(self, session: str | None) -> bool:
        """Return True if the client of a session requested log messages."""
        return session in self._sessions


class RequestStream:
    """The stream of an answer, on which requests can be sent to the client.

    The SDK sends none in the name of a client without a stored session.
    """

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = asyncio.Event()

    async def __call__(self, message: Message) -> None:
        """Send a message of the answer."""
        await self._send(message)
        if message["type"] == "http.response.start":
            self._begun.set()

    async def send_request(self, request: Mapping[str, object]) -> None:
        """Send a JSON-RPC request once the stream has begun."""
        await self._begun.wait()
        frame = b"event: message\ndata: " + orjson.dumps(request) + b"\n\n"
        await self._send({"type": "http.response.body", "body": frame, "more_body": True})


def name_session(send: Send, capabilities: Iterable[str]) -> Send:
    """Add a session id to the answer of an initialization.

    With it the client can listen, cancel its own calls, and answer requests of tools by its capabilities.
    Nothing is stored for the id: any replica takes it.
    """
    session = (SESSION_HEADER.encode(), "-".join((secrets.token_hex(16), *capabilities)).encode())

    async def send_named(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            message["headers"] = [*message["headers"], session]
        await send(message)

    return send_named
