"""Tools whose answers are looked at rather than read: `beckon_tools serve tests.browser.tools:…`."""

import asyncio
import base64
import io
import wave
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from beckon_tools import Person, Progress, ToolError, tool

CITIES = [
    {"city": "Oslo", "country": "Norway", "people": 709037, "founded": "1048"},
    {"city": "Bergen", "country": "Norway", "people": 291940, "founded": "1070"},
    {"city": "Malmö", "country": "Sweden", "people": 357377, "founded": "1275"},
]


@tool(type="test.cities")
async def cities() -> list[dict[str, Any]]:
    """List cities."""
    return CITIES


@tool(type="test.months")
async def months() -> dict[str, Any]:
    """Tell how warm each month was."""
    warmth = [-4.2, -3.1, 0.4, 5.2, 11.3, 15.5, 17.7, 16.2, 11.4, 6.1, 0.9, -3.0]
    return {
        "place": "Oslo",
        "columns": ["month", "celsius"],
        "rows": [[f"2025-{month:02d}", value] for month, value in enumerate(warmth, start=1)],
    }


@tool(type="test.beep")
async def beep() -> dict[str, str]:
    """Make a short sound."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(bytes(range(0, 250, 5)) * 32)
    return {"media_type": "audio/wav", "data_base64": base64.b64encode(file.getvalue()).decode()}


@tool(type="test.book")
async def book(seat: str) -> str:
    """Book a seat."""
    return f"booked {seat}"


class Paint(BaseModel):
    """A form for the person who wants a wall painted."""

    colour: Literal["red", "green"]
    coats: Annotated[int, Field(description="How often it is painted.", ge=1, le=3)] = 1


@tool(type="test.paint")
async def paint(person: Person) -> str:
    """Paint a wall."""
    paint = person.fill_form("Which colour shall it be?", Paint)
    return f"painted {paint.colour}, {paint.coats} times"


@tool(type="test.pages")
async def pages(seen: str, progress: Progress) -> str:
    """Write four pages, each after the one before was seen: a file below the folder `seen` says so."""
    for page in range(1, 5):
        await progress.report(page, 4, f"page {page}")
        while not (Path(seen) / str(page)).exists():  # noqa: ASYNC110 - the one who sees it is another process
            await asyncio.sleep(0.01)
    return "four pages"


@tool(type="test.refuse")
async def refuse() -> str:
    """Refuse."""
    raise ToolError("there are no seats left; ask for another day")
