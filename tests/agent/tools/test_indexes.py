"""The index that is kept: made once, made anew beside the requests, and half of it read only once."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from beckon_agent.tools.bm25 import Index, Indexes
from beckon_contract.resources.tools import Tool
from tests.agent.tools.some_tools import SHOP, a_tool, catalogue
from tests.patience import eventually

COFFEE = {"coffee": 1.0, "brew": 1.0}
LARGE = catalogue(*(a_tool(f"thing{n}", f"Thing {n}.") for n in range(400)))
KETTLE = {"kettle": a_tool("kettle", "Brew coffee.")}


async def settled(indexes: Indexes, tools: Mapping[str, Tool], before: Index) -> Index:
    """Return the new index once there is one."""

    async def is_new() -> bool:
        return await indexes.index_of(tools) is not before

    await eventually(is_new)
    return await indexes.index_of(tools)


async def test_the_same_tools_have_the_same_index() -> None:
    indexes = Indexes()
    index = await indexes.index_of(SHOP)

    assert await indexes.index_of(SHOP) is index
    assert await indexes.index_of(dict(SHOP)) is index


async def test_requests_side_by_side_wait_for_one_index() -> None:
    indexes = Indexes()

    found = await asyncio.gather(*(indexes.index_of(LARGE) for _ in range(5)))

    assert all(index is found[0] for index in found)


async def test_of_few_tools_a_change_is_there_at_once() -> None:
    indexes = Indexes()
    await indexes.index_of(SHOP)

    assert (await indexes.index_of(SHOP | KETTLE)).find_best(COFFEE, 5) == ["kettle"]
    assert (await indexes.index_of(SHOP)).find_best(COFFEE, 5) == []


async def test_of_many_tools_no_one_waits_for_a_change() -> None:
    indexes = Indexes()
    before = await indexes.index_of(LARGE)
    changed = LARGE | KETTLE

    assert await indexes.index_of(changed) is before
    assert (await settled(indexes, changed, before)).find_best(COFFEE, 5) == ["kettle"]


async def test_an_index_that_is_made_anew_ranks_as_one_that_is_made_from_nothing() -> None:
    indexes = Indexes()
    before = await indexes.index_of(LARGE)
    changed = LARGE | KETTLE | {"thing7": replace(LARGE["thing7"], description="Coffee.")}
    del changed["thing9"]

    anew = await settled(indexes, changed, before)

    for query in (COFFEE, {"thing": 1.0, "7": 1.0}, {"9": 1.0}):
        assert anew.find_best(query, 500) == Index(changed).find_best(query, 500)


async def test_who_stops_waiting_takes_the_index_from_no_one() -> None:
    indexes = Indexes()
    impatient = asyncio.create_task(indexes.index_of(LARGE))
    patient = asyncio.create_task(indexes.index_of(LARGE))
    await asyncio.sleep(0)
    impatient.cancel()

    assert (await patient).find_best({"thing": 1.0}, 1) == ["thing0"]
