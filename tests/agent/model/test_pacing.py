"""A stream that is waited for in slices."""

import asyncio
import itertools
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from beckon_agent.api.http.streaming import PacedStream
from tests.patience import PATIENCE


class Source:
    """A stream of numbers that come when a test lets them, and that notes its end."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.closed = False
        self.ended = asyncio.Event()

    async def items(self, *, fails: bool = False) -> AsyncGenerator[int, None]:
        try:
            yield 1
            await self.gate.wait()
            if fails:
                raise ValueError("broken")
            yield 2
        finally:
            await asyncio.sleep(0)  # cleaning up may take its time
            self.closed = True
            self.ended.set()


async def test_an_item_is_not_lost_when_the_wait_for_it_ends() -> None:
    source = Source()
    paced = PacedStream(source.items())

    assert await paced.take_item() == 1
    assert not await paced.is_ready(0.01)
    assert not await paced.is_ready(0.01)
    source.gate.set()
    assert await paced.is_ready(5)
    assert await paced.take_item() == 2
    assert await paced.take_item() is None
    await paced.close()


async def test_what_the_stream_raises_is_raised_where_its_item_is_taken() -> None:
    source = Source()
    source.gate.set()
    paced = PacedStream(source.items(fails=True))
    await paced.wait_for_first(5)

    assert await paced.take_item() == 1
    with pytest.raises(ValueError, match="broken"):
        await paced.take_item()
    await paced.close()


async def test_a_failure_before_the_first_item_is_raised_at_the_beginning() -> None:
    async def failing() -> AsyncGenerator[int, None]:
        for text in ["1", "broken"][1:]:
            yield int(text)

    paced = PacedStream(failing())

    with pytest.raises(ValueError, match="invalid literal"):
        await paced.wait_for_first(5)
    await paced.close()


async def test_what_is_there_is_taken_at_once_and_a_failure_after_it() -> None:
    source = Source()
    source.gate.set()
    paced = PacedStream(source.items(fails=True))
    await paced.wait_for_first(5)
    async with asyncio.timeout(PATIENCE):
        await source.ended.wait()

    batches = paced.yield_batches(keep_alive=PATIENCE)
    assert await anext(batches) == [1]
    with pytest.raises(ValueError, match="broken"):
        await anext(batches)
    await paced.close()


async def test_a_stream_that_no_one_takes_is_read_only_a_little_ahead() -> None:
    read: list[int] = []

    async def endless() -> AsyncGenerator[int, None]:
        for number in itertools.count():
            read.append(number)
            yield number

    paced = PacedStream(endless())
    await paced.wait_for_first(5)
    for _ in range(100):
        await asyncio.sleep(0)
    ahead = len(read)

    assert ahead < 50
    async with aclosing(paced.yield_batches(keep_alive=PATIENCE)) as batches:
        assert await anext(batches) == list(range(ahead))
        assert await anext(batches) == list(range(ahead, 2 * ahead))
    await paced.close()


@pytest.mark.parametrize("taken", [0, 1])
async def test_closing_ends_the_stream_wherever_it_is(taken: int) -> None:
    source = Source()
    paced = PacedStream(source.items())
    for _ in range(taken):
        await paced.take_item()
    assert await paced.is_ready(0.01) is (taken == 0)

    await paced.close()

    assert source.closed


async def test_closing_a_stream_that_never_began_is_nothing() -> None:
    source = Source()

    await PacedStream(source.items()).close()

    assert not source.closed


async def test_a_failure_that_no_one_took_is_not_complained_about() -> None:
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    source = Source()
    source.gate.set()
    paced = PacedStream(source.items(fails=True))
    await paced.take_item()
    await paced.is_ready(5)

    await paced.close()
    del paced

    assert complaints == []
