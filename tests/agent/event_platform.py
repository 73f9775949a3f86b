"""The event side of a test, in its own loop: a real broker, a real shim, and tools served by the real SDK."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from beckon_contract.cloudevents.extensions import PROGRESS_MARK
from beckon_tools.app import app
from beckon_tools.declaration import AnyTool
from beckon_tools.manifests import Placement, event_type, trigger_manifest
from tests.broker.broker_process import Manifest, broker, delivery, running_broker, service, write_manifests
from tests.broker.broker_process import trigger as plain_trigger
from tests.patience import eventually
from tests.serving import served
from tests.shim.support import shim_in_front_of
from tests.tools.serving import configured

PROMPT: Mapping[str, object] = {"progress_seconds": 0}
"""Settings of tools that send each report of progress."""


@dataclass(frozen=True, slots=True)
class EventPlatform:
    """Where calls go, and the folder of manifests that says which there are."""

    shim: str
    folder: Path

    async def metric(self, name: str) -> float:
        """Return a number of the shim's, such as `waiting_calls`."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.shim}/metrics") as response:
            rows = (await response.text()).splitlines()
        return sum(float(row.rpartition(" ")[2]) for row in rows if row.startswith(f"beckon_shim_{name}"))


@asynccontextmanager
async def event_platform(
    folder: Path,
    tools: list[AnyTool],
    addresses: Mapping[str, str],
    *more: Manifest,
    settings: Mapping[str, object] = PROMPT,
) -> AsyncIterator[EventPlatform]:
    """Serve tools behind a broker and a shim; `addresses` are services that the test serves itself.

    The tools have the default settings with the changes in `settings`.
    """
    async with AsyncExitStack() as stack:
        manifests = [*more]
        for tool in tools:
            url = await stack.enter_async_context(served(app(tool, configured(**settings))))
            manifests += declared(tool, url)
        manifests += [service(name, url) for name, url in addresses.items()]
        running = await stack.enter_async_context(running_broker(folder, *manifests))
        shim = await stack.enter_async_context(shim_in_front_of(running.url))
        patched = stack.enter_context(pytest.MonkeyPatch.context())
        patched.setenv("K_SINK", f"{running.url}/default/default")
        sink = {"uri": f"{shim.replies}/dead-letters"}
        write_manifests(
            folder,
            broker(delivery=delivery(retry=1, deadLetterSink=sink)),
            plain_trigger("replies", f"{shim.replies}/replies", filter={"attributes": {"replyid": ""}}),
            plain_trigger("progress", f"{shim.replies}/progress", filter={"attributes": {PROGRESS_MARK: ""}}),
            file="generated.json",
        )

        async def replies_are_routed() -> bool:
            return bool((await running.trigger_status("progress")).get("ready"))

        await eventually(replies_are_routed)
        yield EventPlatform(shim.url, folder)


def declared(tool: AnyTool, url: str) -> list[Manifest]:
    """Return the manifests of a tool that is served at this address."""
    placement = Placement(reference=tool.name)
    return [event_type(tool, placement), trigger_manifest(tool, placement), service(tool.service, url)]


def described(name: str, service_name: str, **annotations: str) -> list[Manifest]:
    """Return an EventType without parameters and its Trigger, by hand; the type is the name."""
    reference: dict[str, Any] = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "name": service_name,
    }
    notes = {f"beckon.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    described_type: Manifest = {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {"name": name, "annotations": notes},
        "spec": {"type": name, "description": f"The tool {name}.", "reference": reference},
    }
    routed = plain_trigger(name, {"ref": reference}, filter={"attributes": {"type": name}})
    return [described_type, routed]
