"""Tools that the pictures of the documentation show: `beckon_tools serve tests.browser.picture_tools:…`."""

import itertools
from typing import Annotated

from pydantic import Field

from beckon_tools import Hints, Retry, tool

_BUSY = 2  # deliveries before the stock is known

_requested = itertools.count(1)


@tool(type="trains.book", hints=Hints(requires_approval=True, destructive=True))
async def book(
    train: Annotated[str, Field(description="Its number, such as 601")],
    seat: Annotated[str, Field(description="Such as 12A")],
) -> str:
    """Book a seat on a train."""
    return f"seat {seat} on train {train} is booked"


@tool(type="stock.count", hints=Hints(read_only=True))
async def count(item: Annotated[str, Field(description="What is counted")]) -> dict[str, object]:
    """Count what is left of an item in each store."""
    if next(_requested) % (_BUSY + 1):
        raise Retry("the stores are being counted")
    return {"item": item, "stores": [{"store": "Oslo", "left": 12}, {"store": "Bergen", "left": 3}]}
