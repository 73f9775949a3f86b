"""The loader: calls in a closed loop, at a fixed rate, or all at once; every answer is checked."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from beckon_contract.correlation import Keyring, sign_request
from bench.shim.wire import Pool, request

# Starts one unit of work; the callback gets whether its answer was right.
Unit = Callable[[Callable[[bool], None]], None]

KEY = "00112233445566778899aabbccddeeff"
"""The key of the shim that is measured."""

_KEYRING = Keyring.parse(KEY)
_TEXT = "x" * 260
_STALL_SECONDS = 60.0
_serial = count(1)


@dataclass(slots=True)
class Result:
    """What one measurement saw: seconds per unit, and how many answers were wrong or missing."""

    seconds: list[float] = field(default_factory=list)
    wrong: int = 0

    def milliseconds(self, quantile: float) -> float:
        """Return a quantile of the latencies."""
        ordered = sorted(self.seconds)
        return 1000 * ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] if ordered else 0.0


def calls(pool: Pool, path: str) -> Unit:
    """Return a unit that is one call through the shim, answered with its own data."""

    def unit(done: Callable[[bool], None]) -> None:
        body = _body()
        message = request(path, _signed(path, _headers(), body), body)
        pool.send(message, lambda status, got: done(status == 200 and got == body))

    return unit


def echoes(pool: Pool, messages: int) -> Unit:
    """Return a unit that is so many POSTs of the same event, one after the other, each echoed."""

    def unit(done: Callable[[bool], None]) -> None:
        body = _body()
        message = request("/", [*_headers(), ("ce-correlationid", "r" * 46)], body)
        left = messages

        def echoed(status: int, got: bytes) -> None:
            nonlocal left
            left -= 1
            if status != 200 or got != body or not left:
                done(status == 200 and got == body)
            else:
                pool.send(message, echoed)

        pool.send(message, echoed)

    return unit


async def closed(unit: Unit, total: int, concurrency: int) -> Result:
    """Run `total` units, so many at a time, each started when one ends."""
    run = _Run(total)
    starts = iter(range(total - concurrency))

    def again() -> None:
        if next(starts, None) is not None:
            run.start(unit, time.perf_counter(), again)

    for _ in range(concurrency):
        run.start(unit, time.perf_counter(), again)
    return await run.result()


async def paced(unit: Unit, total: int, rate: float) -> Result:
    """Start `total` units at a fixed rate whatever becomes of them; latency counts from the plan."""
    run = _Run(total)
    begin = time.perf_counter()
    for number in range(total):
        planned = begin + number / rate
        # uvloop's timers have a millisecond's grain; the start is late by it for every peer alike.
        delay = planned - time.perf_counter()
        if delay > 0:
            await asyncio.sleep(delay)
        run.start(unit, max(planned, time.perf_counter() - 0.001))
    return await run.result()


async def at_once(unit: Unit, total: int) -> "_Run":
    """Start `total` units without waiting for any; await `.result()` of what is returned."""
    run = _Run(total)
    for number in range(total):
        run.start(unit, time.perf_counter())
        if number % 100 == 99:
            await asyncio.sleep(0.01)
    return run


class _Run:
    """Units in flight, and the moment when the last one ends."""

    def __init__(self, total: int) -> None:
        self._left = total
        self._result = Result()
        self._ended = asyncio.Event()

    def start(self, unit: Unit, begun: float, then: Callable[[], None] | None = None) -> None:
        def done(right: bool) -> None:
            self._result.seconds.append(time.perf_counter() - begun)
            self._result.wrong += not right
            self._left -= 1
            if not self._left:
                self._ended.set()
            if then is not None:
                then()

        unit(done)

    async def result(self) -> Result:
        """Wait for the end, while units end; what never ends counts as wrong."""
        while not self._ended.is_set():
            left = self._left
            try:
                await asyncio.wait_for(self._ended.wait(), _STALL_SECONDS)
            except TimeoutError:
                if self._left == left:
                    self._result.wrong += left
                    break
        return self._result


def _headers() -> list[tuple[str, str]]:
    return [
        ("ce-specversion", "1.0"),
        ("ce-id", f"call-{next(_serial)}"),
        ("ce-source", "/beckon/agents/default/bench"),
        ("ce-type", "bench.call"),
        ("ce-time", "2026-01-31T09:30:00Z"),
        ("ce-traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ("prefer", "wait=120"),
        ("content-type", "application/json"),
    ]


def _signed(path: str, headers: list[tuple[str, str]], body: bytes) -> list[tuple[str, str]]:
    """Return the headers with the credential that the shim wants."""
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return [*headers, ("authorization", sign_request(_KEYRING, path, raw, body, time.time()))]


def _body() -> bytes:
    return b'{"serial":%d,"text":"%s"}' % (next(_serial), _TEXT.encode())
