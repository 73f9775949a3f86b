"""The answers of a tool: results as JSON, and late answers by the ticket of a call.

A late answer may come hours after the call was accepted.
"""

import base64
import secrets
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pydantic import ConfigDict, TypeAdapter

from beckon_contract.cloudevents.events import (
    CloudEvent,
    EventError,
    from_structured,
    to_structured,
)
from beckon_contract.cloudevents.extensions import CAUSE, PROGRESS_MARK, STATE
from beckon_contract.failures import Reason, failure
from beckon_contract.jsontext import loads
from beckon_tools.expiry import EXPIRY, read_expiry
from beckon_tools.outbox import find_outbox, has_sink, send_event
from beckon_tools.progress import report_data, report_event, send_report

_JSON = TypeAdapter(object, config=ConfigDict(ser_json_bytes="base64", ser_json_inf_nan="constants"))


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes of a media type, such as a sound. They become JSON data that a page can play or show."""

    media_type: str
    data: bytes

    @classmethod
    def from_base64(cls, media_type: str, text: str) -> "Media":
        """Return the bytes of a text in Base64; raise `ValueError` for any other."""
        return cls(media_type, base64.b64decode(text, validate=True))

    def to_document(self) -> dict[str, str]:
        """Return `{"media_type", "data_base64"}`."""
        return {"media_type": self.media_type, "data_base64": base64.b64encode(self.data).decode()}


class NotJson(ValueError):
    """The function's result cannot be written as JSON."""


def to_data(result: object) -> bytes:
    """Write a tool's result as JSON: any JSON value, dataclasses, pydantic models, `Media`, bytes.

    Raises `NotJson`, also for infinite and not-a-number floats, which JSON has no form for.
    """
    if isinstance(result, bytes):
        result = Media("application/octet-stream", result)
    if isinstance(result, Media):
        result = result.to_document()
    try:
        data = _JSON.dump_json(result)
        if b"NaN" in data or b"Infinity" in data:
            loads(data)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None
    return data


NO_ANSWER_YET = b""
"""The data of a reply that says that the answer comes later; a result is JSON, which is never empty."""


INPUT_MARK = b"input_required "
"""The beginning of the outcome of a call that needs input, before its JSON; no JSON begins so."""


class Later:
    """The result of a tool for a call to be answered later.

    The tool has accepted the call, and answers it with the call's `Ticket`.
    """


def reply_data(result: object) -> bytes:
    """Return the reply data for a function's result; raise `NotJson`."""
    return NO_ANSWER_YET if isinstance(result, Later) else to_data(result)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The ticket for the late answer to one call.

    A function receives it by a parameter of this type. Its holder can answer this call, once, and no
    other.
    """

    _reply: CloudEvent
    _outbox: str = field(default="", compare=False, repr=False)

    @classmethod
    def of(cls, reply: CloudEvent, reply_attribute: str, outbox: str = "", expires: str = "") -> "Ticket":
        """Return the ticket of a call, from a reply to it; `expires` is the call's `expirytime`."""
        stored = {name: value for name, value in reply.extensions.items() if name != STATE}
        if reply_attribute in stored:
            stored[PROGRESS_MARK] = stored[reply_attribute]
        if expires:
            stored[EXPIRY] = expires
        # The same id at every attempt: brokers and agents know a second one by it.
        name = f"{stored[CAUSE]}.answer"
        empty = replace(reply, id=name, data=None, datacontenttype=None, time=None, extensions=stored)
        return cls(empty, outbox)

    @classmethod
    def read(cls, text: str) -> "Ticket":
        """Read a ticket written by `Ticket.text`; raise `ValueError` for anything else."""
        try:
            reply = from_structured(text.encode())
        except EventError as error:
            raise ValueError(f"this is no ticket: {error}") from None
        if CAUSE not in reply.extensions:
            raise ValueError("this is no ticket: it names no call")
        return cls(reply)

    @property
    def call(self) -> str:
        """The id of the call: the same at every delivery, and no other call's."""
        return str(self._reply.extensions[CAUSE])

    def text(self) -> str:
        """Return the ticket as one line of JSON, for durable storage."""
        return to_structured(self._reply)[1].decode()

    async def report(
        self, done: float, total: float | None = None, message: str = "", *, sink: str = ""
    ) -> None:
        """Report progress, `done` of `total`, as `Progress` does.

        Call it at most once a second or so. Reports are optional: one that the Broker does not accept is
        not sent again, and without a Broker none is sent.
        """
        if not (sink or has_sink()):
            return
        token = self._reply.extensions.get(PROGRESS_MARK)
        event = report_event(self._reply, self._reply.type.removesuffix(".reply"), token)
        await send_report(event, secrets.token_hex(6), report_data(done, total, message), sink=sink)

    async def answer(self, result: object, *, sink: str = "") -> None:
        """Send the result to the Broker at `sink`, or at `K_SINK`.

        With an outbox (`BECKON_TOOLS_OUTBOX`) the answer is durable on return: the Broker has
        acknowledged it, or it is in that file and is sent again with back-off until the call expires, a
        day at least. Without one, on return the Broker has acknowledged it.

        Raises `NotSent` otherwise: store the ticket, and answer again.
        """
        await self._send(to_data(result), sink)

    async def fail(self, message: str, *, sink: str = "") -> None:
        """Report a final failure of the call, like `ToolError`; raise `NotSent`."""
        await self._send(to_data(failure(Reason.TOOL_FAILED, message)), sink)

    async def _send(self, data: bytes, sink: str) -> None:
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        event = replace(self._reply, data=data, datacontenttype="application/json", time=now)
        event = event.without(PROGRESS_MARK).without(EXPIRY)
        outbox = find_outbox(self._outbox)
        if outbox is None:
            await send_event(event, "answer", sink=sink)
        else:
            await outbox.send_answer(event, sink, read_expiry(self._reply))
