"""The tool that `helm test` calls."""

from beckon_tools import tool


@tool(type="dev.beckon.test.twice")
async def twice(number: int) -> dict[str, int]:
    """Double a number; a test of this installation."""
    return {"twice": 2 * number}
