"""Probes: small events that show whether a Broker brings replies to the shim.

`POST /probes/NAMESPACE/BROKER`, at the port for replies, makes one as a call is made, and has the end of that
call as its answer; `Prefer: wait=N` sets its deadline, at most 10 s. The event carries its token in the reply
attribute, so that the Broker's reply Trigger brings it to a shim, which answers it with another event. If
that one arrives too, replies arrive: no Trigger and no tool is needed for probes. The event has no
correlation attribute, because it is no call for a tool.

The port takes requests without a credential. So each Broker has one probe at a time, and the answer serves
all that ask for one meanwhile and for a second afterwards.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from uuid import uuid4

from beckon_contract.cloudevents.extensions import preferred_wait
from beckon_runtime.http_messages import Answer, Handler, HangUp, Piece, Request, Respond
from beckon_shim import responses
from beckon_shim.messages import WireEvent

PROBES = "/probes"
PROBE_TYPE = b"dev.beckon.probe"
"""The event type of a probe."""

PROBE_REPLY_TYPE = b"dev.beckon.probe.reply"
"""The event type of the answer to a probe."""

_SOURCE = b"/beckon/shim"
_ID, _TYPE, _EXPIRY = b"ce-id", b"ce-type", b"ce-expirytime"
_LONGEST_WAIT = 10.0
_SERVES_SECONDS = 1.0


def is_probe(event: WireEvent) -> bool:
    """Return True for the event of a probe."""
    return event.attributes[_TYPE] == PROBE_TYPE


def is_probe_reply(event: WireEvent) -> bool:
    """Return True for the answer to a probe."""
    return event.attributes[_TYPE] == PROBE_REPLY_TYPE


def answer_probe(event: WireEvent) -> Answer:
    """Return 200 with the reply event, for the delivery of a probe."""
    attributes = {name: value for name, value in event.attributes.items() if name != _EXPIRY}
    attributes |= {_ID: attributes[_ID] + b"-reply", _TYPE: PROBE_REPLY_TYPE}
    return Answer(200, WireEvent(attributes, b"", b"").headers(), b"", "probed")


@dataclass(slots=True)
class _Probe:
    """A probe in progress, or its answer."""

    waiting: list[Respond] = field(default_factory=list)
    answer: Answer | Piece | None = None


class Probes:
    """A handler that makes probes by the handler of calls, and leaves other requests to another one."""

    def __init__(self, calls: Handler, others: Handler) -> None:
        self._calls = calls
        self._others = others
        self._probes: dict[str, _Probe] = {}

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Make a probe, or pass the request on."""
        if not request.path.startswith(f"{PROBES}/"):
            return self._others.handle(request, respond)
        if request.method != "POST":
            respond(responses.wrong_method(b"POST"))
            return None
        path = request.path.removeprefix(PROBES)
        known = self._probes.get(path)
        if known is None:
            self._probes[path] = _Probe([respond])
            wait = preferred_wait(request.headers)
            self._calls.handle(_make_request(path, wait), partial(self._end, path))
        elif known.answer is None:
            known.waiting.append(respond)
        else:
            respond(known.answer)
        return None

    def too_large(self, request: Request, limit: int) -> Answer:
        """Return the answer to a request with a body over the limit."""
        return self._others.too_large(request, limit)

    def _end(self, path: str, answer: Answer | Piece) -> None:
        probe = self._probes[path]
        probe.answer = answer
        for respond in probe.waiting:
            respond(answer)
        asyncio.get_running_loop().call_later(_SERVES_SECONDS, self._probes.pop, path)


def _make_request(path: str, wait: float | None) -> Request:
    """Return the request of a call with the event of a probe. `wait` is the preferred deadline in seconds."""
    seconds = _LONGEST_WAIT if wait is None else min(wait, _LONGEST_WAIT)
    headers = [
        (b"ce-specversion", b"1.0"),
        (_ID, uuid4().hex.encode()),
        (b"ce-source", _SOURCE),
        (_TYPE, PROBE_TYPE),
        (b"prefer", b"wait=%g" % seconds),
    ]
    return Request("POST", path, headers)
