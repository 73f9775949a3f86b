"""Kill each part of the platform under load: `python -m tests.faults`, a table on standard output.

Two platforms run side by side with 20 calls a second each, one with its events in memory and one with them in
a nats-server. The parts are killed with SIGKILL one after another, each every 20 seconds for as long
as `--seconds` says, and started again a second later. Exit code 1: a promise is broken.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from tests.faults.load import Client, open_session
from tests.faults.report import Row, rows_of, table, write_page
from tests.faults.site import (
    CALL_SECONDS,
    JETSTREAM,
    MEMORY,
    NATS,
    VICTIMS,
    Site,
    running_outside,
    running_site,
)

_PERIOD_SECONDS = 20.0
_FIRST_SECONDS = 3.0
_AWAY_SECONDS = 1.0
_LAST_SECONDS = 5.0  # before the end, so that the part comes back under load


@dataclass(frozen=True, slots=True)
class Plan:
    """What is killed, for how many seconds of load, on platforms with which logs."""

    seconds: float
    logs: Sequence[str] = (MEMORY, JETSTREAM)
    victims: Sequence[str] = VICTIMS


async def run(plan: Plan, folder: Path) -> list[Row]:
    """Carry out a plan, and return the rows of its table."""
    async with AsyncExitStack() as stack:
        outside = await stack.enter_async_context(running_outside(folder))
        starting = [stack.enter_async_context(running_site(log, folder / log, outside)) for log in plan.logs]
        sites = [await each for each in starting]
        http = await stack.enter_async_context(open_session())
        clients = [Client(site.agent, http, CALL_SECONDS) for site in sites]
        await asyncio.gather(*(play(site, client, plan) for site, client in zip(sites, clients, strict=True)))
        runs = [run for client in clients for run in client.runs]
        return rows_of(runs, outside.effects.count())


async def play(site: Site, client: Client, plan: Plan) -> None:
    """Kill one part of a site after another while its client makes calls, and wait for the last answer."""
    for name in plan.victims:
        if name in site.victims:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(client.load((name, site.log), plan.seconds))
                tasks.create_task(_kill(site, name, plan))
    await client.end()


async def _kill(site: Site, name: str, plan: Plan) -> None:
    """Kill a part every 20 seconds, at least once."""
    victim, begun = site.victims[name], asyncio.get_running_loop().time()
    at = min(_FIRST_SECONDS, plan.seconds / 3)
    while True:
        await asyncio.sleep(max(0.0, begun + at - asyncio.get_running_loop().time()))
        await victim.kill()
        await asyncio.sleep(_AWAY_SECONDS)
        await victim.start()
        at += _PERIOD_SECONDS
        if at > plan.seconds - _LAST_SECONDS:
            return


def _find_idle(plan: Plan, rows: Sequence[Row]) -> list[str]:
    """Return a line for each part and log without a call while the part was killed."""
    killed = {(row.killed, row.log) for row in rows}
    wanted = [(name, log) for log in plan.logs for name in plan.victims if log == JETSTREAM or name != NATS]
    return [
        f"no call was made while {name} was killed, log {log}"
        for name, log in wanted
        if (name, log) not in killed
    ]


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of load for each part (60)")
    parser.add_argument("--kill", action="append", choices=VICTIMS, help="only this part; may be repeated")
    parser.add_argument("--log", action="append", choices=(MEMORY, JETSTREAM), help="only this log")
    parser.add_argument("--page", type=Path, help="a page that gets the table between its two marks")
    parser.add_argument("--folder", type=Path, help="where logs and stores stay; a temporary one by default")
    arguments = parser.parse_args()
    plan = Plan(arguments.seconds, arguments.log or (MEMORY, JETSTREAM), arguments.kill or VICTIMS)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        rows = asyncio.run(run(plan, folder))
    sys.stdout.write(table(rows))
    if arguments.page is not None:
        write_page(arguments.page, table(rows))
    broken = [text for row in rows for text in row.broken_promises()] + _find_idle(plan, rows)
    sys.stdout.write("".join(f"broken: {text}\n" for text in broken))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
