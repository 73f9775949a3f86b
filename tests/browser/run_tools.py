"""Tools for the views Tools and Runs: `beckon_tools serve tests.browser.run_tools:…`."""

import asyncio
import itertools
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from beckon_tools import Hints, Retry, ToolError, tool

_turn = itertools.count(1)
_moods = itertools.count(1)
_PATIENCE = 100.0  # seconds


class Place(BaseModel):
    """Return where a person is."""

    city: str
    country: str = "Norway"


@tool(type="test.order", hints=Hints(read_only=True))
async def order(
    item: Annotated[str, Field(description="What is wanted.", min_length=2)],
    *,
    count: Annotated[int, Field(ge=1, le=9)] = 1,
    size: Literal["small", "large"] = "small",
    gift: bool = False,
    place: Place | None = None,
    notes: list[str] | None = None,
) -> dict[str, object]:
    """Order something."""
    where = None if place is None else place.model_dump()
    return {"item": item, "count": count, "size": size, "gift": gift, "place": where, "notes": notes}


@tool(type="test.pause", hints=Hints(read_only=True))
async def pause(seconds: float) -> str:
    """Take some time."""
    await asyncio.sleep(seconds)
    return f"paused for {seconds:g} s"


@tool(type="test.hold", hints=Hints(read_only=True))
async def hold(file: str) -> str:
    """Wait until there is a file, which a test makes when it has seen enough."""
    async with asyncio.timeout(_PATIENCE):
        while not Path(file).exists():  # noqa: ASYNC110, ASYNC240  # another process makes it; a test's file system is quick
            await asyncio.sleep(0.05)
    return "held"


@tool(type="test.next", hints=Hints(read_only=True))
async def next_number() -> dict[str, int]:
    """Answer with another number every time."""
    return {"number": next(_turn)}


@tool(type="test.square", hints=Hints(read_only=True))
async def square(number: int) -> dict[str, object]:
    """Multiply a number by itself."""
    return {"number": number, "squares": [number**2]}


@tool(type="test.refuse")
async def refuse() -> str:
    """Refuse."""
    raise ToolError("there are no seats left; ask for another day")


@tool(type="test.moody", hints=Hints(read_only=True))
async def moody() -> str:
    """Answer at the third delivery."""
    if next(_moods) % 3:
        raise Retry("not in the mood")
    return "all right"


@tool(type="test.book", hints=Hints(requires_approval=True))
async def book(seat: str) -> str:
    """Book a seat."""
    return f"booked {seat}"
