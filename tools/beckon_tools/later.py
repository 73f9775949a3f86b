"""Answers that come hours after their call: the call is taken at once, and its ticket kept until then."""

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import httpx

from beckon_contract.acceptance import CAUSE, STATE
from beckon_contract.events import CloudEvent, EventError, from_structured, to_binary, to_structured
from beckon_contract.failures import Reason, failure
from beckon_tools.errors import NotSent
from beckon_tools.results import to_data

SINK = "K_SINK"
"""The environment variable with the Broker's address: what a SinkBinding of Knative sets."""

_SECONDS = 30.0
_TRIES = 3


class Later:
    """What a tool returns that has taken a call, and answers it with the call's `Ticket`."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """What the answer to one call needs; a function gets it by a parameter of this type.

    Whoever has it can answer this call, once, and no other.
    """

    _reply: CloudEvent

    @classmethod
    def of(cls, reply: CloudEvent) -> "Ticket":
        """Return the ticket of a call, from a reply to it."""
        kept = {name: value for name, value in reply.extensions.items() if name != STATE}
        # The same id at every attempt: brokers and agents know a second one by it.
        name = f"{kept[CAUSE]}.answer"
        return cls(replace(reply, id=name, data=None, datacontenttype=None, time=None, extensions=kept))

    @classmethod
    def read(cls, text: str) -> "Ticket":
        """Return the ticket that `text` wrote; raise `ValueError` for anything else."""
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
        """Return the ticket as one line of JSON, to be kept where a restart does not reach."""
        return to_structured(self._reply)[1].decode()

    async def answer(self, result: object, *, sink: str = "") -> None:
        """Send the result to the Broker at `sink`, or where `K_SINK` says.

        Raises `NotSent` where the Broker has not taken it: keep the ticket, and answer again.
        """
        await self._send(to_data(result), sink)

    async def fail(self, message: str, *, sink: str = "") -> None:
        """Say that the call failed for good, as `ToolError` does; raises `NotSent`."""
        await self._send(to_data(failure(Reason.TOOL_FAILED, message)), sink)

    async def _send(self, data: bytes, sink: str) -> None:
        address = sink or os.environ.get(SINK, "")
        if not address:
            raise NotSent(f"where is the Broker? Set {SINK} to its address, as a SinkBinding does")
        now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        event = replace(self._reply, data=data, datacontenttype="application/json", time=now)
        headers, body = to_binary(event)
        try:
            transport = httpx.AsyncHTTPTransport(retries=_TRIES)
            async with httpx.AsyncClient(transport=transport, timeout=_SECONDS) as client:
                answer = await client.post(address, content=body, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise NotSent(f"the Broker at {address} does not answer: {type(error).__name__}") from None
        if not answer.is_success:
            raise NotSent(f"the Broker at {address} did not take the answer: {answer.status_code}")
