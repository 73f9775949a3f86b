from tests.bench_process import quick_bench


async def test_the_benchmark_runs_and_every_answer_is_right() -> None:
    table = await quick_bench("bench.shim")
    for row in ("CPU per call, shim / echo", "1000 calls/s, added", "300 held, 300 answered"):
        assert row in table
