"""Pages of lists in the order of names.

The cursor is the last name on the page, so that changes between two pages lose no entry.
"""

from collections.abc import Iterable
from itertools import islice

import mcp_types as types
from mcp.shared.exceptions import MCPError

PAGE = 1_000  # entries; several clients never read a second page
_CURSOR = "after:"


def page_of(names: Iterable[str], cursor: str | None) -> tuple[list[str], dict[str, str]]:
    """Return the names on a page, and the member of the result with the cursor of the next page.

    The member is missing on the last page. Raises `MCPError` for a cursor of another server.
    """
    if cursor is not None and not cursor.startswith(_CURSOR):
        message = "the cursor is none of this server's; leave it out to begin with the first page"
        raise MCPError(types.INVALID_PARAMS, message)
    last = "" if cursor is None else cursor.removeprefix(_CURSOR)
    chosen = list(islice((name for name in names if name > last), PAGE + 1))
    page = chosen[:PAGE]
    return page, {"nextCursor": f"{_CURSOR}{page[-1]}"} if len(chosen) > PAGE else {}
