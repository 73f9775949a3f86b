"""Calls through a shim of the probe's own, as an agent makes them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aiohttp
import orjson

from beckon_cli.errors import CommandError
from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http, to_binary
from beckon_contract.correlation import Keyring, SigningKey
from beckon_contract.knative.reply_triggers import AGENTS
from beckon_runtime.process import CannotListen, listen
from beckon_shim.service import Service
from beckon_shim.settings import Settings

SOURCE = f"{AGENTS}probe"
"""The CloudEvents source of calls, one of those that reply Triggers leave out."""

_LOOPBACK = "127.0.0.1"
_HANGING = 10.0  # seconds beyond the deadline of a call, after which it counts as hanging
_LONGEST = 3600.0


@dataclass(frozen=True, slots=True)
class CallResult:
    """The end of one call: the reply, or the problem document of the shim.

    `status` is 0 for a call without any answer. `right` says that the reply belongs to the call.
    """

    id: str
    status: int
    seconds: float
    right: bool = False
    problem: Mapping[str, Any] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of the problem, such as `timeout`; else `answered`, `wrong reply` or `no answer`."""
        if self.problem:
            return str(self.problem.get("type", "")).rpartition(":")[2].rpartition("/")[2]
        if self.status == 0:
            return "no answer"
        return "answered" if self.right else "wrong reply"

    @property
    def text(self) -> str:
        """The reason in the problem document."""
        return str(self.problem.get("detail", ""))

    def describe(self) -> str:
        """Return the end in a few words."""
        return f"{self.status} {self.kind}" if self.problem else self.kind


class Caller:
    """Makes calls of the probe's event types. `reply_url` is where its shim takes replies."""

    def __init__(self, service: Service, session: aiohttp.ClientSession) -> None:
        self.reply_url = f"http://{_LOOPBACK}:{service.reply_port}"
        self._url = f"http://{_LOOPBACK}:{service.port}/probe/broker"
        self._session = session

    async def call(
        self, event_type: str, wait: float, hints: Mapping[str, str], *, any_data: bool = False
    ) -> CallResult:
        """Make one call with a deadline in seconds, and return its end, whatever it is.

        `hints` are the headers by which an agent says what it knows of the tool. With `any_data` each reply
        is right, else only one with the data of the call.
        """
        call_id = uuid4().hex
        data = orjson.dumps({"call": call_id})
        event = CloudEvent(call_id, SOURCE, event_type, data, "application/json")
        headers, body = to_binary(event)
        timeout = aiohttp.ClientTimeout(total=wait + _HANGING)
        started = time.monotonic()
        try:
            async with self._session.post(
                self._url,
                data=body,
                headers={**dict(headers), **hints, "prefer": f"wait={wait:g}"},
                timeout=timeout,
            ) as response:
                content = await response.read()
        except (aiohttp.ClientError, TimeoutError):
            return CallResult(call_id, 0, time.monotonic() - started)
        seconds = time.monotonic() - started
        if response.status == 200:
            right = any_data or _data_of(response.raw_headers, content) == data
            return CallResult(call_id, 200, seconds, right=right)
        return CallResult(call_id, response.status, seconds, problem=orjson.loads(content))


def _data_of(headers: tuple[tuple[bytes, bytes], ...], content: bytes) -> bytes | None:
    """Return the data of an event with JSON, written anew; `None` for another answer."""
    try:
        event = from_http(headers, content, relayed=True)
        return None if event.data is None else orjson.dumps(orjson.loads(event.data))
    except (EventError, ValueError):
        return None


@contextlib.asynccontextmanager
async def open_caller(broker_url: str) -> AsyncIterator[Caller]:
    """Run a shim in front of a Broker on free ports of loopback; yield a caller.

    Raises `CommandError` if the machine has no free port, or for a URL that the shim refuses.
    """
    # Not from the environment: what is set there is for the shim of the platform.
    settings = Settings.model_construct(
        broker_url=broker_url, open_calls=True, max_timeout=_LONGEST, drain_seconds=0.0
    )
    try:
        sockets = listen(_LOOPBACK, 0), listen(_LOOPBACK, 0)
        service = Service(settings, Keyring([SigningKey.random()]), sockets)
    except (CannotListen, ValueError) as error:
        raise CommandError(str(error), status=2) from None
    stop = asyncio.Event()
    running = asyncio.create_task(service.run(stop))
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Caller(service, session)
    finally:
        stop.set()
        await running
