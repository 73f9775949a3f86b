"""The measure that the ranking is held to: real tools, real questions, labelled by others."""

import asyncio
import re
import sys
from pathlib import Path

from tests.shared_data import shared_data

ROOT = Path(__file__).resolve().parents[3]
for source in ("bfcl", "tau-bench", "openapi-tools"):
    shared_data(source)


async def test_of_the_tools_that_questions_need_95_in_100_are_among_the_first_20() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.tools", "--quick", cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), 50)
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    told = output.decode()

    assert process.returncode == 0, told
    size = re.match(r"(\d+) tools, (\d+) questions, (\d+) of them held out\n", told)
    assert size is not None
    assert int(size[1]) >= 1_000
    assert int(size[3]) >= 500
    reached = re.search(r"^recall at 20, held out: (0\.\d+|1\.0+);", told, re.MULTILINE)
    assert reached is not None
    assert float(reached[1]) >= 0.95
