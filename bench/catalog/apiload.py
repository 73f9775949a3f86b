"""How many requests the API server gets, by verb and resource, and how many in the worst second."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from bench.cluster.api import Api

_RESOURCES = frozenset(
    ("eventtypes", "triggers", "brokers", "tools", "agents", "agents/status", "events", "leases")
)
_SAMPLE_SECONDS = 1.0

Key = tuple[str, str]


@dataclass(slots=True)
class Requests:
    """What came during a phase. The counter has no user, so others' requests are in it, too."""

    counts: Counter[Key] = field(default_factory=Counter)
    most_in_a_second: float = 0.0

    def words(self) -> str:
        """Return the counts as text, the most frequent first."""
        return ", ".join(
            f"{count} {verb} {resource}" for (verb, resource), count in self.counts.most_common()
        )


@asynccontextmanager
async def counted(api: Api) -> AsyncIterator[Requests]:
    """Count what comes inside of the block; the numbers are there after it."""
    requests = Requests()
    before = await _totals(api)
    sampling = asyncio.create_task(_sample(api, requests))
    try:
        yield requests
    finally:
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling
    after = await _totals(api)
    requests.counts = Counter(
        {key: int(after[key] - before[key]) for key in after if after[key] > before[key]}
    )


async def _sample(api: Api, requests: Requests) -> None:
    then, before = time.monotonic(), sum((await _totals(api)).values())
    while True:
        await asyncio.sleep(_SAMPLE_SECONDS)
        now, total = time.monotonic(), sum((await _totals(api)).values())
        requests.most_in_a_second = max(requests.most_in_a_second, (total - before) / (now - then))
        then, before = now, total


async def _totals(api: Api) -> Counter[Key]:
    totals: Counter[Key] = Counter()
    lines = [line for line in (await api.text("/metrics")).splitlines() if "apiserver_request_total" in line]
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        for sample in family.samples:
            labels = sample.labels
            resource = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            if resource in _RESOURCES:
                totals[labels["verb"], resource] += int(sample.value)
    return totals
