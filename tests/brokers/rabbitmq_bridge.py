"""A Broker on RabbitMQ for the tests: `python -m tests.brokers.rabbitmq_bridge AMQP_URL PORT FOLDER`.

What it is: the rules of knative-extensions/eventing-rabbitmq, written anew. An ingress publishes each event
to a headers exchange, with the attributes as headers (cmd/ingress/main.go, pkg/rabbit/message.go). Each
Trigger has a durable queue, bound by the attributes of `spec.filter` and `x-match: all`
(pkg/rabbit/binding.go), and a dispatcher with one worker that delivers, repeats, and posts replies to the
ingress; a failed event goes to the Trigger's own dead-letter exchange and queue
(pkg/dispatcher/dispatcher.go). Exchange, bindings, queues, acks and confirms are those of a real RabbitMQ.

What it is not: that project's code, its controllers, or anything for production. One process is
ingress and all dispatchers. Triggers come from a folder, and `/status` describes them in the form of the
embedded broker, which the real ingress does not have. What sdk-go makes of an answer was measured with the
real dispatchers: a 4xx that is not repeated, and a body that is no event, count as delivered without a reply.
"""

import asyncio
import contextlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aio_pika
import aiohttp
from aio_pika.abc import AbstractChannel, AbstractExchange, AbstractIncomingMessage, AbstractQueue
from aiohttp import web

from beckon_contract.cloudevents.events import (
    AttributeValue,
    CloudEvent,
    EventError,
    from_http,
    is_event,
    to_binary,
)
from beckon_contract.knative.delivery import Delivery, is_retriable
from beckon_contract.knative.triggers import InvalidResource, Trigger, parse_trigger
from beckon_contract.kubernetes_objects import Resource
from beckon_sources.folders import ManifestFolders

EXCHANGE = "broker"
NO_TIME = "0001-01-01T00:00:00Z"  # what Go writes for an event without a time
PREFETCH = 100
POLL_SECONDS = 0.1
PLAIN = frozenset({"id", "source", "type", "subject", "dataschema", "time"})


@dataclass(frozen=True)
class Failure:
    """A delivery without success; the code is -1 if there was no HTTP answer."""

    code: int


def to_message(event: CloudEvent) -> aio_pika.Message:
    """Return an event as a persistent message with its attributes as headers."""
    content_type = event.datacontenttype or ""
    headers: dict[str, Any] = {"time": NO_TIME, "specversion": "1.0", "content-type": content_type}
    headers |= {name: value for name, value in event.attributes().items() if name != "datacontenttype"}
    return aio_pika.Message(
        event.data or b"",
        headers=headers,
        message_id=event.id,
        content_type=event.datacontenttype,
        delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
    )


def to_event(message: AbstractIncomingMessage) -> CloudEvent:
    """Return the event in a message; headers of RabbitMQ itself begin with `x-`."""
    headers = {name: _to_value(value) for name, value in message.headers.items() if not name.startswith("x-")}
    content_type = str(headers.pop("content-type", "")) or None
    headers.pop("specversion")
    if headers.get("time") == NO_TIME:
        del headers["time"]
    attributes = {name: str(headers.pop(name)) for name in PLAIN & headers.keys()}
    return CloudEvent(
        **attributes, data=message.body or None, datacontenttype=content_type, extensions=headers
    )


def _to_value(value: object) -> AttributeValue:
    return value if isinstance(value, int) else str(value)


def pause_before(delivery: Delivery, retry: int) -> float:
    """Return the seconds before a retry, counted from 1; sdk-go begins there, too (context/retry.go)."""
    if delivery.backoff_policy == "linear":
        return delivery.backoff_delay * retry
    return (delivery.backoff_delay or 0.05) * 2.0**retry


class Dispatcher:
    """Takes the messages of one queue, one at a time."""

    def __init__(
        self, session: aiohttp.ClientSession, subscriber: str, delivery: Delivery, ingress: str
    ) -> None:
        self._session = session
        self._subscriber = subscriber
        self._delivery = delivery
        self._ingress = ingress
        self.dead_letters: AbstractExchange | None = None

    async def work(self, queue: AbstractQueue) -> None:
        """Deliver until cancelled; what is not acknowledged then comes again."""
        async with queue.iterator() as messages:
            async for message in messages:
                await self._dispatch(message)

    async def _dispatch(self, message: AbstractIncomingMessage) -> None:
        event = to_event(message)
        found = await self._request(self._subscriber, event)
        if isinstance(found, CloudEvent):
            found = await self._request(self._ingress, found)
        if isinstance(found, Failure) and self.dead_letters is not None:
            letter = event.extended(knativeerrordest=self._subscriber, knativeerrorcode=found.code)
            await self.dead_letters.publish(to_message(letter), "")
        await message.ack()

    async def _request(self, url: str, event: CloudEvent) -> CloudEvent | Failure | None:
        """Post an event with retries; return the reply, the last failure, or `None` for no reply."""
        found: CloudEvent | Failure | None = None
        for retry in range(self._delivery.retry + 1):
            if retry:
                await asyncio.sleep(pause_before(self._delivery, retry))
            found = await self._attempt(url, event)
            if not isinstance(found, Failure):
                return found
        return found

    async def _attempt(self, url: str, event: CloudEvent) -> CloudEvent | Failure | None:
        headers, body = to_binary(event)
        timeout = aiohttp.ClientTimeout(total=self._delivery.timeout)
        try:
            async with self._session.post(url, data=body, headers=dict(headers), timeout=timeout) as answer:
                content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError):
            return Failure(-1)
        if is_retriable(answer.status):
            return Failure(answer.status)
        if not is_event(answer.raw_headers):
            return None
        try:
            return from_http(answer.raw_headers, content, relayed=True)
        except EventError:
            return None


class Bridge:
    """Ingress, Triggers and their dispatchers, on one connection to RabbitMQ."""

    def __init__(self, channel: AbstractChannel, exchange: AbstractExchange, url: str, folder: Path) -> None:
        self._channel = channel
        self._exchange = exchange
        self._url = url
        self._manifests = ManifestFolders((folder,))
        self._session = aiohttp.ClientSession(skip_auto_headers=("Content-Type",))
        self._running: dict[str, list[tuple[AbstractQueue, asyncio.Task[None]]]] = {}

    async def take(self, request: web.Request) -> web.Response:
        """Take an event: 202 once RabbitMQ has it on its disk."""
        if request.method != "POST":
            return web.Response(status=405)
        try:
            event = from_http(request.raw_headers, await request.read(), relayed=True)
        except EventError:
            return web.Response(status=400)
        await self._exchange.publish(to_message(event), "", mandatory=False)
        return web.Response(status=202)

    async def describe(self, _: web.Request) -> web.Response:
        """Describe the Triggers as the embedded broker does."""
        triggers = [{"namespace": "default", "name": name, "ready": True} for name in self._running]
        return web.json_response({"triggers": triggers})

    async def follow(self) -> None:
        """Make queues for new Triggers of the folder, and delete those of removed ones."""
        while True:
            if self._manifests.refresh():
                found = filter(None, map(parse, self._manifests.resources))
                wanted = {trigger.name: (trigger, attributes) for trigger, attributes in found}
                for name in self._running.keys() - wanted.keys():
                    await self._unsubscribe(name)
                for name in wanted.keys() - self._running.keys():
                    await self._subscribe(*wanted[name])
            await asyncio.sleep(POLL_SECONDS)

    async def close(self) -> None:
        """Close the connections to subscribers."""
        await self._session.close()

    async def _subscribe(self, trigger: Trigger, attributes: Mapping[str, str]) -> None:
        delivery = trigger.delivery or Delivery()
        dispatcher = Dispatcher(self._session, trigger.subscriber.uri or "", delivery, self._url)
        running = []
        if delivery.dead_letter is not None and delivery.dead_letter.uri:
            name = f"{trigger.name}.dlq"
            exchange = await self._channel.declare_exchange(f"{trigger.name}.dlx", "headers", durable=True)
            dispatcher.dead_letters = exchange
            sink = Dispatcher(self._session, delivery.dead_letter.uri, delivery, self._url)
            running.append(await self._consume(name, exchange, {"x-knative-dlq": trigger.name}, sink))
        binding = {**attributes, "x-knative-trigger": trigger.name}
        running.append(await self._consume(trigger.name, self._exchange, binding, dispatcher))
        self._running[trigger.name] = running

    async def _consume(
        self, name: str, exchange: AbstractExchange, binding: Mapping[str, str], dispatcher: Dispatcher
    ) -> tuple[AbstractQueue, asyncio.Task[None]]:
        queue = await self._channel.declare_queue(name, durable=True)
        await queue.bind(exchange, "", arguments={**binding, "x-match": "all"})
        return queue, asyncio.create_task(dispatcher.work(queue))

    async def _unsubscribe(self, name: str) -> None:
        for queue, task in self._running.pop(name):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await queue.delete(if_unused=False, if_empty=False)


def parse(resource: Resource) -> tuple[Trigger, Mapping[str, str]] | None:
    """Return a Trigger with the attributes of its `filter` (`filters` do not count), `None` for others."""
    try:
        trigger = parse_trigger(resource)
    except InvalidResource:
        return None
    found = (resource.spec.get("filter") or {}).get("attributes") or {}
    return trigger, {str(name): str(value) for name, value in found.items()}


async def serve(amqp_url: str, port: int, folder: Path) -> None:
    """Serve until cancelled, or until RabbitMQ is gone."""
    connection = await aio_pika.connect(amqp_url)
    channel = await connection.channel(publisher_confirms=True)
    await channel.set_qos(prefetch_count=PREFETCH)
    exchange = await channel.declare_exchange(EXCHANGE, "headers", durable=True)
    bridge = Bridge(channel, exchange, f"http://127.0.0.1:{port}/", folder)
    app = web.Application(client_max_size=4 * 1024 * 1024)
    app.router.add_route("*", "/", bridge.take)
    app.router.add_get("/status", bridge.describe)
    app.router.add_get("/healthz", bridge.describe)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        await bridge.follow()
    finally:
        await bridge.close()
        await runner.cleanup()
        await connection.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
