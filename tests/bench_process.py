"""Running a benchmark as its user does."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


async def quick_bench(module: str) -> str:
    """Run a benchmark with `--quick` to its end, which must be a good one; return what it printed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", module, "--quick", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 50)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    text = output.decode()
    assert process.returncode == 0, text
    return text
