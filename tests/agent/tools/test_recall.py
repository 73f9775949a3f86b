"""The measure that the ranking is held to: real tools, real questions, labelled by others."""

import re

from tests.bench_process import quick_bench
from tests.shared_data import shared_data

for source in ("bfcl", "tau-bench", "openapi-tools"):
    shared_data(source)


async def test_of_the_tools_that_questions_need_95_in_100_are_among_the_first_20() -> None:
    shown = await quick_bench("bench.tools")

    size = re.match(r"(\d+) tools, (\d+) questions, (\d+) of them held out\n", shown)
    assert size is not None
    assert int(size[1]) >= 1_000
    assert int(size[3]) >= 500
    reached = re.search(r"^recall at 20, held out: (0\.\d+|1\.0+);", shown, re.MULTILINE)
    assert reached is not None
    assert float(reached[1]) >= 0.95
