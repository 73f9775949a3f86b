"""Pulling messages of a JetStream consumer: one request for several of them after the other.

A request is for as many messages as there is room for. The server answers it over up to a minute, and sends
heartbeats meanwhile (NATS's ADR-13); a request without a sign of life is sent again.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

logger = logging.getLogger(__name__)

_PULL_SECONDS = 60.0
_HEARTBEAT_SECONDS = 5.0
_SILENCE_SECONDS = 12.0  # more than two heartbeats
_UNREADY_SECONDS = 0.5
_BATCH = 256
_HEARTBEAT = "100"
_EXPIRED = "408"


def end_if_cancelled() -> None:
    """Raise `CancelledError` in a task that was cancelled: nats-py and `asyncio.wait_for` may swallow it.

    A loop without an end of its own would go on, and with it a process that is to stop.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


class Pull:
    """Pulls the messages of one consumer while `room` is more than 0, and calls `receive` with each."""

    def __init__(
        self,
        client: Client,
        stream: str,
        consumer: str,
        room: Callable[[], int],
        receive: Callable[[Msg], None],
    ) -> None:
        self._client = client
        self._subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        self._room = room
        self._receive = receive
        self._open = 0  # messages that the request in force may still bring
        self._change = asyncio.Event()
        self._alive = False
        self._inbox = ""
        self._subscription: Subscription | None = None
        self._stopped = False
        self._delay = 0.0
        self._number = 0

    def wake(self) -> None:
        """Note that there is room again."""
        if not self._open:
            self._change.set()

    def restart(self) -> None:
        """Send the request again: the server has forgotten it."""
        self._open = 0
        self._change.set()

    async def stop(self) -> None:
        """Pull no more, and wait for the pulls in progress."""
        self._stopped = True
        self._change.set()
        if self._subscription is not None:
            with contextlib.suppress(NatsError):
                await self._subscription.drain()  # type: ignore[no-untyped-call]  # nats-py types it partly

    async def run(self) -> None:
        """Pull until stopped."""
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(f"{self._inbox}.*", cb=self._take_message)
        while not self._stopped:
            await self._request_messages()
            while self._open and self._alive:
                end_if_cancelled()
                self._alive = False
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._change.wait(), _SILENCE_SECONDS)
            end_if_cancelled()
            self._change.clear()

    async def _request_messages(self) -> None:
        """Send a request for as many messages as there is room for; without room, wait for it."""
        while (room := min(self._room(), _BATCH)) <= 0 and not self._stopped:
            self._open = 0
            self._change.clear()
            await self._change.wait()
        await asyncio.sleep(self._delay)  # a server that has just started may not have its consumers yet
        if self._stopped:
            return
        self._number += 1
        self._open, self._alive = room, True
        wanted = {
            "batch": room,
            "expires": _nanoseconds(_PULL_SECONDS),
            "idle_heartbeat": _nanoseconds(_HEARTBEAT_SECONDS),
        }
        try:
            await self._client.publish(
                self._subject, orjson.dumps(wanted), reply=f"{self._inbox}.{self._number}"
            )
        except NatsError as error:
            logger.warning("events cannot be pulled at the moment: %s", error)
            await asyncio.sleep(_UNREADY_SECONDS)

    async def _take_message(self, message: Msg) -> None:
        self._alive = True
        if message.subject.startswith(self._inbox):
            status = (message.headers or {}).get("Status")
            if status not in {None, _HEARTBEAT} and message.subject.endswith(f".{self._number}"):
                self._delay = 0.0 if status == _EXPIRED else _UNREADY_SECONDS
                self.restart()
            return
        self._open -= 1
        self._receive(message)
        if self._open <= 0:
            self._change.set()


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
