"""A real broker on a free port of loopback, with its manifests in a folder of the test."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from beckon_broker.service import QueueLimits, Service
from beckon_broker.settings import Settings
from beckon_contract.cloudevents.events import CloudEvent, to_binary, to_structured
from beckon_runtime.process import listen
from tests.patience import PATIENCE, eventually

Manifest = dict[str, object]
log_settings: dict[str, Any] = {}
"""The settings of every broker of the test that runs: where its events are kept."""
SHORT = {"backoffPolicy": "exponential", "backoffDelay": "PT0.01S"}


def trigger(name: str, subscriber: str | Mapping[str, object], **spec: object) -> Manifest:
    """Return a Trigger of the broker `default`, unless the spec says otherwise."""
    destination = {"uri": subscriber} if isinstance(subscriber, str) else subscriber
    namespace = spec.pop("namespace", "default")
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"broker": "default", "subscriber": destination, **spec},
    }


def broker(name: str = "default", namespace: str = "default", **spec: object) -> Manifest:
    """Return a Broker."""
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def service(name: str, url: str) -> Manifest:
    """Return a Knative Service that publishes this address."""
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": name},
        "status": {"address": {"url": url}},
    }


def delivery(retry: int = 0, sink: str | None = None, **fields: object) -> Manifest:
    """Return a delivery spec with a back-off of a few milliseconds."""
    found: Manifest = {"retry": retry, **SHORT, **fields}
    return found if sink is None else {**found, "deadLetterSink": {"uri": sink}}


def event(
    name: str = "e1", kind: str = "test.call", data: bytes | None = b"{}", **extensions: str
) -> CloudEvent:
    """Return an event with this id and type and JSON data."""
    content_type = None if data is None else "application/json"
    return CloudEvent(name, "/test", kind, data, content_type, extensions=extensions)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole HTTP answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.body)
        return found


class RunningBroker:
    """What a test does with a broker over HTTP, and to its manifests."""

    def __init__(self, url: str, folder: Path, session: aiohttp.ClientSession, running: Service) -> None:
        self.url = url
        self.folder = folder
        self.session = session
        self.service = running

    def write(self, *manifests: Manifest, file: str = "all.json") -> None:
        """Replace a manifest file in one step."""
        write_manifests(self.folder, *manifests, file=file)

    async def send(
        self,
        sent: CloudEvent,
        to: str = "default/default",
        headers: Mapping[str, str] | None = None,
        *,
        structured: bool = False,
    ) -> Answer:
        """POST an event to a broker and read the whole answer."""
        event_headers, body = to_structured(sent) if structured else to_binary(sent)
        return await self.request("POST", f"/{to}", body, {**dict(event_headers), **(headers or {})})

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | AsyncIterator[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make any request and read the whole answer."""
        async with self.session.request(
            method, self.url + path, data=body, headers=headers, skip_auto_headers=("Content-Type",)
        ) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, headers, await response.read())

    async def wait_until_ready(self) -> None:
        """Wait until the broker accepts events."""

        async def is_ready() -> bool:
            return (await self.request("GET", "/readyz")).status == 200

        await eventually(is_ready)

    async def status(self) -> dict[str, Any]:
        """Return the status document."""
        return (await self.request("GET", "/status")).json()

    async def trigger_status(self, name: str) -> dict[str, Any]:
        """Return what the status says of a Trigger, empty where it says nothing."""
        return next((each for each in (await self.status())["triggers"] if each["name"] == name), {})

    async def metric(self, name: str, **labels: str) -> float:
        """Return a sample of `beckon_broker_NAME`, summed over the labels that are not given."""
        text = (await self.request("GET", "/metrics")).body.decode()
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        samples = [line for line in text.splitlines() if line.startswith(f"beckon_broker_{name}")]
        return sum(float(line.rpartition(" ")[2]) for line in samples if all(each in line for each in wanted))


def write_manifests(folder: Path, *manifests: Manifest, file: str = "all.json") -> None:
    """Write a manifest file as a careful program does: completely, then into place."""
    new = folder / f".{file}.new"
    new.write_bytes(orjson.dumps({"kind": "List", "apiVersion": "v1", "items": list(manifests)}))
    new.replace(folder / file)


@asynccontextmanager
async def running_broker(
    folder: Path,
    *manifests: Manifest,
    limits: QueueLimits | None = None,
    wait: bool = True,
    **settings: object,
) -> AsyncIterator[RunningBroker]:
    """Run a broker over the manifests of a folder until the end of the block.

    It keeps its events as `log_settings` say. It is ready when the block begins, unless `wait` is false.
    """
    write_manifests(folder, *manifests)
    options = {"manifests": (folder,), "drain_seconds": 0.0, **log_settings, **settings}
    chosen = Settings.model_validate(options)
    running = Service(chosen, listen("127.0.0.1", 0), limits=limits)
    task = asyncio.create_task(running.run())
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(PATIENCE)) as session:
        found = RunningBroker(running.url, folder, session, running)
        try:
            if wait:
                await found.wait_until_ready()
            yield found
        finally:
            running.stop()
            await asyncio.wait_for(task, PATIENCE)
