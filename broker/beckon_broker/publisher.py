"""Storing messages in JetStream: published, and acknowledged by the server.

Each event that the broker accepts needs one such message. The client library's own request takes twice the
CPU: it makes an inbox of random characters and a task with a time limit for each. Here one subscription has
all acknowledgements, and the last part of their subjects is the number of the message.
"""

import asyncio
from typing import Any

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ConnectionClosedError
from nats.js.errors import APIError, NoStreamResponseError

ID_HEADER = "Nats-Msg-Id"


class Publisher:
    """Publishes to streams. `open` must be called once, when the client is connected."""

    def __init__(self, client: Client, seconds: float) -> None:
        """Give the server `seconds` for each acknowledgement."""
        self._client = client
        self._seconds = seconds
        self._inbox = ""
        self._number = 0
        self._waiting: dict[str, asyncio.Future[Msg]] = {}

    async def open(self) -> None:
        """Subscribe to the acknowledgements; the client renews this after each loss of its connection."""
        self._inbox = self._client.new_inbox()
        await self._client.subscribe(f"{self._inbox}.*", cb=self._take)

    async def publish(self, subject: str, payload: bytes, message_id: str) -> None:
        """Store a message, once under its id.

        Raises `TimeoutError` without an acknowledgement, `NoStreamResponseError` if there is no stream for
        the subject, `APIError` with the server's reason, and the client's errors.
        """
        if not self._inbox:
            raise ConnectionClosedError
        self._number += 1
        reply = f"{self._inbox}.{self._number}"
        loop = asyncio.get_running_loop()
        acknowledged = self._waiting[reply] = loop.create_future()
        timer = loop.call_later(self._seconds, _fail, acknowledged)
        try:
            await self._client.publish(subject, payload, reply, {ID_HEADER: message_id})
            message = await acknowledged
        finally:
            timer.cancel()
            del self._waiting[reply]
        _check(message)

    async def _take(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)


def _fail(acknowledged: asyncio.Future[Msg]) -> None:
    if not acknowledged.done():
        acknowledged.set_exception(TimeoutError())


def _check(message: Msg) -> None:
    """Raise the error in an answer of the server. One without data says that no stream has the subject."""
    if not message.data:
        raise NoStreamResponseError
    answer: dict[str, Any] = orjson.loads(message.data)
    if error := answer.get("error"):
        raise APIError.from_error(error)
