"""SIGKILL of each part under load, with the durable log: the small form of `python -m tests.faults`."""

from pathlib import Path

from tests.faults.__main__ import Plan, run
from tests.faults.site import JETSTREAM, VICTIMS, Options


async def test_no_call_is_lost_and_no_effect_happens_twice(tmp_path: Path) -> None:
    """It takes 15 s: five parts are killed one after another, and each must be there again under load."""
    plan = Plan(2.0, away_seconds=0.2, logs=[JETSTREAM], options=Options(lease_seconds=2.0))

    rows = await run(plan, tmp_path)

    assert [row.killed for row in rows] == list(VICTIMS)
    assert [text for row in rows for text in row.broken_promises()] == []
    assert min(row.calls for row in rows) >= 40
