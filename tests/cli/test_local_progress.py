"""The progress of the local platform's processes while they start."""

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from beckon_cli.local.process import Process, Program, Progress
from tests.patience import until

WORK = "while True: sum(range(1000))"
WAIT = "import time; time.sleep(1000)"
CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {WORK!r}])"


@asynccontextmanager
async def started(code: str) -> AsyncIterator[Process]:
    process = Process(Program("test", (sys.executable, "-c", code)), {})
    process.start()
    try:
        yield process
    finally:
        await process.stop(5)


@pytest.mark.parametrize("code", [WORK, CHILD])
async def test_a_program_that_computes_or_whose_child_does_makes_progress(code: str) -> None:
    async with started(code) as process:
        progress = Progress(process, 1)
        before = process.cpu_seconds()
        await until(lambda: process.cpu_seconds() > before + 0.3)

        progress.check()

        assert not progress.stalled


async def test_a_program_that_only_waits_is_stalled_after_its_limit_of_checks() -> None:
    async with started(WAIT) as process:
        progress = Progress(process, 3)
        await until(lambda: _check_again(progress))

        assert progress.stalled


def _check_again(progress: Progress) -> bool:
    time.sleep(0.2)
    progress.check()
    return progress.stalled
