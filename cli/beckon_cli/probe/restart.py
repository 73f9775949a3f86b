"""The case of a killed Broker: calls at a steady rate, and some that its tool has at that moment."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from beckon_cli.probe.calls import CallResult
from beckon_cli.probe.cases import Probe, describe_results
from beckon_cli.probe.report import Row, Verdict
from beckon_cli.probe.tools import HELD

Restart = Callable[[], Awaitable[None]]

HELD_CALLS = 5
_CASE = "restart"
_LOOK_SECONDS = 0.01


async def try_restart(probe: Probe, restart: Restart) -> Row:
    """Make calls while the Broker is killed; count how they end.

    `HELD_CALLS` of them are acknowledged and at work, or queued where the Broker delivers one at a time, when
    the Broker is killed. Their tool answers once the Broker is back.
    """
    options = probe.options
    calls: list[asyncio.Task[CallResult]] = []

    def make_call(case: str) -> None:
        calls.append(asyncio.create_task(probe.call(case, wait=options.restart_wait)))

    async def make_calls(seconds: float) -> None:
        for _ in range(int(options.rate * seconds)):
            make_call(_CASE)
            await asyncio.sleep(1 / options.rate)

    await make_calls(options.restart_load / 3)
    for _ in range(HELD_CALLS):
        make_call(HELD)
    await _wait_until_held(probe)
    await asyncio.gather(_restart(probe, restart), make_calls(options.restart_load * 2 / 3))
    return _judge(probe, await asyncio.gather(*calls))


async def _restart(probe: Probe, restart: Restart) -> None:
    try:
        await restart()
    finally:
        probe.tools.released.set()


async def _wait_until_held(probe: Probe) -> None:
    """Wait until the tool has all held calls, for the patience of the options at most."""
    deadline = time.monotonic() + probe.options.patience
    while probe.endpoint.visits[HELD].working < HELD_CALLS and time.monotonic() < deadline:  # noqa: ASYNC110  # nothing signals it
        await asyncio.sleep(_LOOK_SECONDS)


def _judge(probe: Probe, results: list[CallResult]) -> Row:
    visits = probe.endpoint.visits
    runs = {result.id: visits[_CASE].runs[result.id] + visits[HELD].runs[result.id] for result in results}
    lost = [result for result in results if not result.right]
    again = sum(count > 1 for count in runs.values())
    parts = [describe_results(results)]
    if lost:
        ran = sum(runs[result.id] > 0 for result in lost)
        parts.append(f"of the others {ran} ran")
    if again:
        parts.append(f"{again} ran twice or more")
    hanging = any(result.kind in ("no answer", "wrong reply") for result in results)
    verdict = Verdict.BAD if hanging else Verdict.LIMITED if lost or again else Verdict.GOOD
    longest = max(result.seconds for result in results)
    return Row(_CASE, verdict, "; ".join(parts), longest, max(runs.values()))
