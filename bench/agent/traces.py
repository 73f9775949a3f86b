"""What traces cost: the same runs with traces off, on and sampled out, side by side, as ratios.

Each Beckon here is a broker, a shim and an agent of its own. *On* exports every span by OTLP over HTTP to a
collector on loopback that throws it away; *sampled out* is on with a sampler that keeps no trace. A round
measures all of them, one after the other, and a ratio is that of the figures of one round: what the
machine does beside it changes from round to round. The table has the medians of the ratios.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from bench.agent import measure
from bench.agent.contestants import Collector, Contestant, Field
from bench.agent.exchange import connect
from bench.agent.measure import Amount, compute_ratios, rotate
from bench.cluster.table import show

_OFF = {"OTEL_SDK_DISABLED": "true"}
# Spans go out in batches, or so long after the last one, in milliseconds: no round pays for another's.
_DELAY = 500
_MOST_EXPORTED = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Traced:
    """What is compared, and the collector that those with traces send them to."""

    collector: Collector
    contestants: Sequence[Contestant]


async def traced(field: Field) -> Traced:
    """Start them."""
    collector = await field.collector()
    on = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": str(_DELAY)}
    sampled_out = {**on, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}
    contestants = [
        await field.traced("off", _OFF),
        await field.traced("on", on),
        await field.traced("on, sampled out", sampled_out),
    ]
    return Traced(collector, contestants)


async def compare(those: Traced, amount: Amount) -> int:
    """Print the table; return how many answers were wrong, or how many of the contestants sent no spans."""
    collector, contestants = those.collector, those.contestants
    found = {one.name: measure.Runs() for one in contestants}
    idle = {one.name: one.own.rss_megabytes() for one in contestants}
    for one in contestants:
        await measure.runs(one, 2 * amount.at_once, amount.at_once, measure.Runs())
    exported = await _exported(collector)
    for number in range(amount.rounds):
        for one in rotate(contestants, number):
            await measure.runs(one, amount.runs, amount.at_once, found[one.name], settle=2 * _DELAY / 1000)
    exported = await _exported(collector) - exported
    rows = [_row(one.name, found, idle[one.name]) for one in contestants]
    title = f"CPU of a run of two turns with one tool call, {amount.at_once} at once, in milliseconds"
    show(title, ["traces", "own", "of off", "path", "of off", "p50 ms", "MB idle", "wrong"], rows)
    runs = amount.rounds * amount.runs
    print(f"exported: {exported / runs:,.0f} bytes a run")
    if exported <= 0 or exported > runs * _MOST_EXPORTED:
        return 1
    return sum(runs.wrong for runs in found.values())


def _row(name: str, found: dict[str, measure.Runs], idle: float) -> list[str]:
    own, path = compute_ratios(found["off"], found[name])
    median = found[name].median
    figures = [f"{median.own:.2f}", f"{own:.2f}", f"{median.path:.2f}", f"{path:.2f}", f"{median.p50:.1f}"]
    return [name, *figures, f"{idle:.0f}", str(found[name].wrong)]


async def _exported(collector: Collector) -> int:
    """Return how many bytes the collector has got."""
    connection = await connect(collector.port, "-")
    answered = await connection.exchange(b"GET /counted HTTP/1.1\r\nhost: bench\r\n\r\n")
    connection.close()
    return int(orjson.loads(answered.body)["bytes"])
