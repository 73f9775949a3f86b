"""From `kubectl apply` to the model: new tools one after another, under a steady stream of chats."""

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx

from bench.catalog.manifests import declared_name, new_name
from bench.catalog.model import ModelServer
from bench.catalog.sync import TOOLS
from bench.cluster.api import Api, is_ready
from bench.cluster.beckon import Manifest, listed
from tests.cluster.kube import Kube

_CHAT_SECONDS = 0.02
_LONGEST_SECONDS = 60
_WORTH_A_WORD = 3.0

Make = Callable[[int], list[Manifest]]


@dataclass(slots=True)
class Moments:
    """When the objects of one kind were first seen Ready, by name (`time.perf_counter`)."""

    ready: dict[str, float] = field(default_factory=dict)

    async def follow(self, api: Api, path: str) -> None:
        """Watch until cancelled."""
        async for resource in api.watch(path):
            if is_ready(resource):
                self.ready.setdefault(resource["metadata"]["name"], time.perf_counter())


@dataclass(slots=True)
class Series:
    """Times in seconds of one kind of change; every list has one entry a change."""

    from_start: list[float] = field(default_factory=list)
    from_end: list[float] = field(default_factory=list)
    trigger: list[float] = field(default_factory=list)
    operator: list[float] = field(default_factory=list)
    agent: list[float] = field(default_factory=list)
    gone: list[float] = field(default_factory=list)


def quantile(values: list[float], part: float) -> float:
    """Return a quantile, 0 of an empty list."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0.0


class Latency:
    """The running platform, its model, and watches on what is in between."""

    def __init__(self, kube: Kube, model: ModelServer) -> None:
        self._kube = kube
        self._model = model
        self._triggers = Moments()
        self._tools = Moments()
        self._question = "What is the weather?"

    @asynccontextmanager
    async def under_chats(self, api: Api, agent_url: str) -> AsyncIterator[None]:
        """Chat with the agent all the time, and watch Triggers and Tools."""
        tasks = [
            asyncio.create_task(self._chat(agent_url)),
            asyncio.create_task(self._triggers.follow(api, api.path("eventing.knative.dev/v1", "triggers"))),
            asyncio.create_task(self._tools.follow(api, api.path(TOOLS, "tools"))),
        ]
        try:
            yield
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def series(self, make: Make, count: int) -> Series:
        """Apply and delete so many new tools, one after another."""
        series = Series()
        for number in range(count):
            await self._one(make(number), number, series)
        return series

    async def _one(self, manifests: list[Manifest], number: int, series: Series) -> None:
        name = new_name(number)
        self._triggers.ready.pop(name, None)
        self._tools.ready.pop(name, None)
        self._question = f"What is the weather? Ask {declared_name(name)}."
        seen = self._model.expect(declared_name(name), present=True)
        began = time.perf_counter()
        await self._kubectl("apply", "-f", "-", stdin=listed(manifests))
        ended = time.perf_counter()
        declared = await asyncio.wait_for(seen, _LONGEST_SECONDS)
        series.from_start.append(declared - began)
        series.from_end.append(declared - ended)
        # Watches of our own may lag a moment behind those of Beckon.
        routed = self._triggers.ready.get(name, declared) if len(manifests) > 1 else ended
        written = self._tools.ready.get(name, declared)
        series.trigger.append(routed - ended)
        series.operator.append(written - routed)
        series.agent.append(declared - written)
        if declared - ended > _WORTH_A_WORD:
            sys.stderr.write(
                f"{name}: {declared - ended:.1f} s, of which its Trigger {routed - ended:.1f} s, "
                f"operator {written - routed:.1f} s, agent {declared - written:.1f} s\n"
            )
        gone = self._model.expect(declared_name(name), present=False)
        began = time.perf_counter()
        await self._kubectl("delete", "--wait=false", "-f", "-", stdin=listed(manifests))
        series.gone.append(await asyncio.wait_for(gone, _LONGEST_SECONDS) - began)

    async def _chat(self, agent_url: str) -> None:
        """Ask the agent one question after another, at most fifty a second."""
        async with httpx.AsyncClient(base_url=agent_url, timeout=30) as client:
            while True:
                began = time.perf_counter()
                messages = [{"role": "user", "content": self._question}]
                request = {"model": "beckon", "messages": messages}
                (await client.post("/v1/chat/completions", json=request)).raise_for_status()
                await asyncio.sleep(max(0.0, _CHAT_SECONDS - (time.perf_counter() - began)))

    async def _kubectl(self, *arguments: str, stdin: str) -> None:
        await asyncio.to_thread(self._kube.run, *arguments, stdin=stdin)


def middle(values: list[float]) -> float:
    """Return the median, 0 of an empty list."""
    return statistics.median(values) if values else 0.0
