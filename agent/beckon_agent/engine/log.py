"""The log of a run, read page by page."""

from collections.abc import AsyncGenerator

from beckon_agent.engine.base import EngineEvent
from beckon_agent.engine.codec import from_log
from beckon_agent.store.base import EventLog

_PAGE = 500


async def logged(log: EventLog, run_id: str, after: int = 0) -> AsyncGenerator[tuple[int, EngineEvent]]:
    """Yield what is in the log behind a number."""
    number = after
    while page := await log.after(run_id, number, most=_PAGE):
        for number, document in page:
            yield number, from_log(document)
