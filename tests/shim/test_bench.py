import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


async def test_the_benchmark_runs_and_every_answer_is_right() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.shim", "--quick", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 50)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    table = output.decode()
    assert process.returncode == 0, table
    for row in ("CPU per call, shim / echo", "1000 calls/s, added", "300 held, 300 answered"):
        assert row in table
