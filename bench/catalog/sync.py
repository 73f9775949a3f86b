"""The first sight of a full catalogue: how long operator and agent take, and what it costs."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from bench.catalog.apiload import Requests, counted
from bench.cluster import beckon
from bench.cluster.api import Api, is_ready
from bench.cluster.target import ready_pods, service_address
from bench.cluster.usage import Pods
from tests.cluster.kube import Kube

_LONGEST_SECONDS = 900
_LOOK_SECONDS = 0.25
_METRICS_PORT = 9090  # of the agent's Service
TOOLS = "beckon.dev/v1alpha1"


@dataclass(frozen=True, slots=True)
class Sync:
    """One start of one component: seconds from `kubectl scale`, and what its pod used until then."""

    what: str
    seconds: float
    cpu_seconds: float
    rss_megabytes: float
    requests: Requests


async def sync_operator(kube: Kube, api: Api, tools: int) -> Sync:
    """Start the operator, and wait until every Tool is there and Ready."""
    watching = asyncio.create_task(_tools_become_ready(api, tools))
    try:
        return await _sync(kube, api, "operator", "operator: every Tool written and Ready", watching)
    finally:
        watching.cancel()


async def sync_operator_again(kube: Kube, api: Api) -> Sync:
    """Start the operator where every Tool is there already, and wait until it says that it is ready."""
    waiting = until(lambda: _is_available(api, "operator"), "the operator is ready")
    return await _sync(kube, api, "operator", "operator: ready again, nothing to write", waiting)


async def sync_agent(kube: Kube, api: Api, tools: int) -> Sync:
    """Start the agent, and wait until its catalogue has every Tool."""
    waiting = until(lambda: _agent_has(kube, tools), "the agent has every Tool")
    return await _sync(kube, api, "agent", "agent: every Tool in the catalogue", waiting)


def pods_of(kube: Kube, component: str) -> Pods:
    """Return the running pods of a component of Beckon."""
    labels = f"app.kubernetes.io/name=beckon,app.kubernetes.io/component={component}"
    return Pods(ready_pods(kube, labels).values())


async def missed_changes(kube: Kube) -> int:
    """Return how many changes the operator found by comparing, since no watch had brought them."""
    async with httpx.AsyncClient(timeout=10) as client:
        answer = await client.get(f"http://{service_address(kube, 'beckon-operator')}/metrics")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    return int(
        sum(
            sample.value
            for sample in families["beckon_operator_missed"].samples
            if sample.name.endswith("_total")
        )
    )


def agent_url(kube: Kube) -> str:
    """Return the agent's address as the node sees it."""
    return f"http://{service_address(kube, 'beckon-agent')}"


async def _sync(kube: Kube, api: Api, component: str, what: str, done: Awaitable[None]) -> Sync:
    async with counted(api) as requests:
        began = time.perf_counter()
        await asyncio.to_thread(beckon.scale, kube, component, 1)
        await asyncio.wait_for(done, _LONGEST_SECONDS)
        seconds = time.perf_counter() - began
    pods = pods_of(kube, component)
    return Sync(what, seconds, pods.cpu_seconds(), pods.rss_megabytes(), requests)


async def until(done: Callable[[], Awaitable[bool]], what: str) -> None:
    """Look until it is so; raise `TimeoutError` after fifteen minutes."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not await done():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come about within {_LONGEST_SECONDS} s that {what}")
        await asyncio.sleep(_LOOK_SECONDS)


async def all_ready(api: Api, path: str, count: int) -> bool:
    """Whether so many objects are there, and all are Ready; the count is read first, as it is cheap."""
    if await api.count(path) < count:
        return False
    ready = 0
    query = {"limit": "500"}
    while True:
        page = await api.get(path, **query)
        ready += sum(map(is_ready, page["items"]))
        if not page["metadata"].get("continue"):
            return ready >= count
        query["continue"] = page["metadata"]["continue"]


async def _tools_become_ready(api: Api, tools: int) -> None:
    ready: set[str] = set()
    async for tool in api.watch(api.path(TOOLS, "tools")):
        if is_ready(tool):
            ready.add(tool["metadata"]["name"])
        if len(ready) >= tools:
            return


async def _is_available(api: Api, component: str) -> bool:
    deployment = await api.get(f"{api.path('apps/v1', 'deployments')}/beckon-{component}")
    return bool(deployment["status"].get("readyReplicas"))


async def _agent_has(kube: Kube, tools: int) -> bool:
    try:
        async with httpx.AsyncClient(timeout=2) as client:
            answer = await client.get(f"{agent_url(kube)}:{_METRICS_PORT}/metrics")
    except httpx.HTTPError:  # its pod does not answer yet
        return False
    if answer.status_code != 200:
        return False
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    return families["beckon_agent_tools"].samples[0].value >= tools
