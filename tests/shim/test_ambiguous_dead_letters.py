"""Dead letters without a reason: which calls wait on, for how long, and how they end."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from beckon_shim.service import WaitTimes
from tests.patience import PATIENCE, until
from tests.shim.support import Server, Shim, shim_in_front_of, waiting_call
from tests.shim.test_progress import report


@pytest.fixture
async def graceful(broker: Server) -> AsyncIterator[Shim]:
    """A shim whose grace is long enough for the next event to come in time on a busy machine."""
    async with shim_in_front_of(broker.url, waits=WaitTimes(after_dead_letter=2)) as shim:
        yield shim


async def test_a_call_of_a_type_that_no_one_has_answered_gives_up_after_the_grace(
    shim: Shim, broker: Server
) -> None:
    call = await waiting_call(shim, broker)

    await shim.dead_letter(broker.posts[0])
    status, body = await asyncio.wait_for(call, PATIENCE)  # its own time is 30 s

    assert (status, json.loads(body)["type"]) == (502, "https://beckon.dev/problems/undeliverable")


async def test_a_type_that_was_answered_before_waits_to_its_deadline_and_says_why_then(
    shim: Shim, broker: Server
) -> None:
    answered = await waiting_call(shim, broker)
    await shim.reply(broker.posts[0].token)
    await answered
    call = asyncio.create_task(shim.call(prefer="wait=1"))
    await until(lambda: len(broker.posts) == 2)
    began = asyncio.get_running_loop().time()

    await shim.dead_letter(broker.posts[1])
    status, _, body = await call

    assert asyncio.get_running_loop().time() - began > 0.5  # the grace is 0.1 s
    assert (status, json.loads(body)["type"]) == (502, "https://beckon.dev/problems/undeliverable")


@pytest.mark.parametrize("first", ["sign", "letter"])
@pytest.mark.parametrize("sign", ["report", "acceptance"])
async def test_a_call_whose_tool_says_that_it_is_at_work_waits_on(
    graceful: Shim, broker: Server, first: str, sign: str
) -> None:
    call = await waiting_call(graceful, broker)
    (posted,) = broker.posts
    at_work = (
        report(graceful, posted.token, 1)
        if sign == "report"
        else graceful.reply(posted.token, b"", ce_beckonstate="accepted")  # which this caller does not take
    )
    events = [at_work, graceful.dead_letter(posted)]

    for event in events if first == "sign" else reversed(events):
        await event
    done, _ = await asyncio.wait([call], timeout=2.2)  # longer than the grace
    assert not done
    await graceful.reply(posted.token, b"late, and true")

    assert await call == (200, b"late, and true")


async def test_letters_of_several_deleted_triggers_are_one_doubt(graceful: Shim, broker: Server) -> None:
    call = await waiting_call(graceful, broker)
    (posted,) = broker.posts

    for _ in range(3):
        await graceful.dead_letter(posted)
    await report(graceful, posted.token, 1)
    done, _ = await asyncio.wait([call], timeout=2.2)  # longer than the grace
    assert not done
    await graceful.reply(posted.token, b"late, and true")

    assert await call == (200, b"late, and true")


async def test_a_letter_that_says_why_ends_a_call_of_any_type(shim: Shim, broker: Server) -> None:
    call = await waiting_call(shim, broker)
    await report(shim, broker.posts[0].token, 1)

    await shim.dead_letter(broker.posts[0], ce_knativeerrorcode="500")

    assert (await asyncio.wait_for(call, PATIENCE))[0] == 502
