"""The shipped servers in one process: each on its own port, and none in the way of the others."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.e2e.local_platform import clean_environment, port_range
from tests.patience import PATIENCE, eventually
from tests.tools.serving import call
from tests.tools.tool_process import post

Process = asyncio.subprocess.Process


@asynccontextmanager
async def group(*words: str, **settings: str) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "beckon_cli.local.group", *words),
        env=clean_environment(settings),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def answers(url: str) -> bool:
    async with httpx.AsyncClient(timeout=PATIENCE) as client:
        try:
            return (await client.get(f"{url}/healthz")).status_code == 200
        except httpx.TransportError:
            return False


async def test_each_server_answers_on_its_own_port_until_sigterm() -> None:
    port = port_range()
    calculator, library = (f"http://127.0.0.1:{port + number}" for number in (1, 2))

    async with group(f"calculator={port + 1}", f"library={port + 2}") as process:
        await eventually(lambda: answers(calculator))
        reply = await post(calculator, call("calculator", {"expression": "6*7"}))
        async with httpx.AsyncClient(timeout=PATIENCE) as client:
            books = await client.get(f"{library}/books", params={"subject": "physics"})
            stranger = await client.get(f"{library}/books", headers={"host": "evil.example"})
        process.terminate()
        status = await asyncio.wait_for(process.wait(), PATIENCE)

    assert b"42" in (reply.data or b"")
    assert books.json()["count"] == 2
    assert stranger.status_code == 421
    assert status == 0


async def test_a_server_that_cannot_be_built_is_left_out_with_its_reason() -> None:
    port = port_range()

    async with group(f"calculater={port + 1}", f"calculator={port + 2}") as process:
        await eventually(lambda: answers(f"http://127.0.0.1:{port + 2}"))
        assert not await answers(f"http://127.0.0.1:{port + 1}")
        process.terminate()
        _, said = await process.communicate()

    assert b"there is no tool 'calculater'; did you mean 'calculator'?" in said
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no server is left; write NAME=PORT for each"),
        (["calculator"], "'calculator' is no server; write NAME=PORT"),
        (["calculator=99999"], "'calculator=99999' is no server"),
    ],
)
async def test_wrong_words_are_one_line(words: list[str], said: str) -> None:
    async with group(*words) as process:
        _, text = await process.communicate()

    assert process.returncode == 2
    assert text.count(b"\n") == 1
    assert said in text.decode()
