"""Measure the shim: `python -m bench.shim [--quick]`, a table on standard output.

Four processes: this one is the loader; the shim is the real `python -m beckon_shim`; a
stub plays Broker and tool (202, then a POST of the reply); and the peer is a bare ASGI
application (uvicorn, uvloop, httptools) that echoes a POST.

One call through the shim is three messages: the call, the post to the Broker, the reply.
The peer takes three messages of the same size in its place, as a server each time, and
does nothing with them. The shim is the server of two and the client of one; it checks two
events, signs and verifies a token, keeps a deadline, watches the caller and counts. Its
own server does less than ASGI requires of uvicorn, which is part of the ratio. So the ratio of
CPU per call is the price of a shim in units of moving the same bytes through an ordinary
server; it is taken in interleaved rounds, as the median, because a shared machine changes
while one measures. Latencies depend on the machine: read them beside the direct hop of the
same run.
"""

import argparse
import asyncio
import statistics
import sys
from dataclasses import dataclass

import uvloop

from bench.shim import load
from bench.shim.processes import Child, free_port, listening, raise_file_limit, start
from bench.shim.wire import Pool

_CONCURRENCY = 32
_RATE = 1000.0
_LARGEST_RATIO = 2.5
_MEMORY_MEGABYTES = 130.0
_SHARE_OF_CALLERS = 0.44  # of the shim's files; its limit of connections is a little above


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured."""

    rounds: int
    calls: int
    paced_calls: int
    waiting: tuple[int, ...]
    judged: bool


FULL = Plan(rounds=5, calls=10_000, paced_calls=5_000, waiting=(5_000, 10_000), judged=True)
QUICK = Plan(rounds=1, calls=2_000, paced_calls=300, waiting=(300,), judged=False)


class Bench:
    """The processes under measurement, and the rows of the table."""

    def __init__(self, shim: Child, echo: Child, ports: tuple[int, int, int]) -> None:
        self._shim = shim
        self._echo = echo
        self._shim_port, self._echo_port, self._stub_port = ports
        self.wrong = 0
        self.missed: list[str] = []

    async def cost(self, plan: Plan) -> None:
        """Measure the CPU per call of shim and peer in turns; print the ratio."""
        shim_pool = Pool("127.0.0.1", self._shim_port, _CONCURRENCY)
        echo_pool = Pool("127.0.0.1", self._echo_port, _CONCURRENCY)
        await shim_pool.open(_CONCURRENCY)
        await echo_pool.open(_CONCURRENCY)
        call, echo = load.calls(shim_pool, "/default/bench"), load.echoes(echo_pool, 3)
        await self._microseconds(self._shim, call, 1000)
        await self._microseconds(self._echo, echo, 1000)
        pairs = []
        for number in range(plan.rounds):
            shim_cost = await self._microseconds(self._shim, call, plan.calls)
            echo_cost = await self._microseconds(self._echo, echo, plan.calls)
            pairs.append((shim_cost, echo_cost))
            _row(f"round {number + 1}, CPU per call", f"shim {shim_cost:.0f} us", f"echo {echo_cost:.0f} us")
        ratio = statistics.median(shim / echo for shim, echo in pairs)
        _row("CPU per call, shim / echo", f"{ratio:.2f}", f"at most {_LARGEST_RATIO}")
        if plan.judged and ratio > _LARGEST_RATIO:
            self.missed.append(f"CPU ratio {ratio:.2f}")
        shim_pool.close()
        echo_pool.close()

    async def latency(self, plan: Plan) -> None:
        """Measure the round trip at a fixed rate beside the direct hop, in turns; print both."""
        shim_pool = Pool("127.0.0.1", self._shim_port, 512)
        echo_pool = Pool("127.0.0.1", self._echo_port, 512)
        await shim_pool.open(8)
        await echo_pool.open(8)
        shim, direct = load.Result(), load.Result()
        call, echo = load.calls(shim_pool, "/default/bench"), load.echoes(echo_pool, 1)
        before = self._shim.cpu_seconds()
        for _ in range(2):
            for into, unit in ((direct, echo), (shim, call)):
                part = await load.paced(unit, plan.paced_calls, _RATE)
                into.seconds += part.seconds
                self.wrong += part.wrong
        cpu = (self._shim.cpu_seconds() - before) / (2 * plan.paced_calls) * 1e6
        for name, result in (("direct hop", direct), ("through the shim", shim)):
            _row(
                f"{_RATE:.0f} calls/s, {name}",
                *(f"p{q} {result.milliseconds(q / 100):.2f} ms" for q in (50, 99)),
            )
        added = [f"p{q} {shim.milliseconds(q / 100) - direct.milliseconds(q / 100):.2f} ms" for q in (50, 99)]
        _row(f"{_RATE:.0f} calls/s, added", *added, f"{cpu:.0f} us CPU per call")
        shim_pool.close()
        echo_pool.close()

    async def waiting(self, total: int) -> None:
        """Let so many calls wait at once, release them all, and look at the memory."""
        pool = Pool("127.0.0.1", self._shim_port, total)
        await pool.open(total)
        before = self._shim.rss_megabytes()
        run = await load.at_once(load.calls(pool, "/hold/bench"), total)
        held = await self._held(total)
        during = self._shim.rss_megabytes()
        release = Pool("127.0.0.1", self._stub_port, 1)
        release.send(
            b"POST /release HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n", lambda *_: None
        )
        result = await run.result()
        release.close()
        pool.close()
        self.wrong += result.wrong
        answered = total - result.wrong
        after = self._shim.rss_megabytes()
        _row(
            f"{total:,} calls waiting at once",
            f"{held:,} held, {answered:,} answered",
            f"RSS {before:.0f} connected, {during:.0f} waiting, {after:.0f} MB after",
        )
        if total == 5_000 and max(during, after) > _MEMORY_MEGABYTES:
            self.missed.append(f"{max(during, after):.0f} MB with 5,000 waiting")
        if answered < total:
            self.missed.append(f"{answered} of {total} answered")

    async def _microseconds(self, child: Child, unit: load.Unit, total: int) -> float:
        before = child.cpu_seconds()
        result = await load.closed(unit, total, _CONCURRENCY)
        self.wrong += result.wrong
        return (child.cpu_seconds() - before) / total * 1e6

    async def _held(self, total: int) -> int:
        """Wait until all calls wait and the stub has all events, at most 60 s; return how many wait."""
        waiting = 0
        for _ in range(600):
            waiting = await _gauge(self._shim_port, "beckon_shim_waiting_calls")
            posts = await _gauge(self._shim_port, "beckon_shim_broker_posts")
            if waiting >= total and posts == 0:
                break
            await asyncio.sleep(0.1)
        return waiting


async def _gauge(port: int, name: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return int(float(text.split(f"\n{name} ")[1].split("\n")[0]))


def _row(what: str, *cells: str) -> None:
    print(f"{what:<36}" + "".join(f"{cell:<34}" for cell in cells).rstrip(), flush=True)


async def run(plan: Plan, files: int) -> int:
    """Start everything, measure, stop everything; return 0 where every target was met.

    `files` is how many a process may open: calls that wait have a connection each.
    """
    call_port, reply_port = free_port(), free_port()
    echo = await start("bench.shim.echo")
    stub = await start("bench.shim.stub", str(reply_port))
    children = [echo, stub]
    try:
        stub_port = int(await stub.first_line())
        environment = {
            "BECKON_SHIM_BROKER_URL": f"http://127.0.0.1:{stub_port}/{{namespace}}/{{name}}",
            "BECKON_PORT": str(call_port),
            "BECKON_SHIM_REPLY_PORT": str(reply_port),
            "BECKON_LOG_LEVEL": "error",
            "BECKON_SHIM_KEYS": load.KEY,
            # All connections of the bench are of one client, which by default has half of a port's.
            "BECKON_MAX_CONNECTIONS_PER_CLIENT": str(2 * max(plan.waiting)),
            "BECKON_MAX_CONNECTIONS": str(2 * max(plan.waiting)),
        }
        shim = await start("beckon_shim", environment=environment)
        children.append(shim)
        await listening(call_port)
        bench = Bench(shim, echo, (call_port, int(await echo.first_line()), stub_port))
        await bench.cost(plan)
        await bench.latency(plan)
        for total in plan.waiting:
            if total > _SHARE_OF_CALLERS * files:
                _row(f"{total:,} calls waiting at once", f"left out: only {files:,} files may be open")
            else:
                await bench.waiting(total)
    finally:
        for child in children:
            await child.stop()
    _row("wrong or missing answers", f"{bench.wrong}")
    _row("targets", "met" if not bench.missed else "missed: " + "; ".join(bench.missed))
    return 1 if bench.missed or bench.wrong else 0


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.shim", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="a few seconds, not judged: does it work at all")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(plan, raise_file_limit()))


if __name__ == "__main__":
    sys.exit(main())
