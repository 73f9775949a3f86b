"""The events of a run in progress, for observers.

An observer neither keeps the run alive nor ends it.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import asdict
from typing import Any

from beckon_agent.api.http.streaming import KEEP_ALIVE, PacedStream
from beckon_agent.core.records import FINAL
from beckon_agent.core.run_events import (
    CallProgressed,
)
from beckon_agent.durable.event_log import ReportsSeen
from beckon_agent.durable.serialization import event_from_document
from beckon_agent.store.base import Store
from beckon_agent.tool_calls.recorded_events import shown_document

_PAGE = 500
_LOOK, _LOOK_SUSPENDED = 0.25, 1.0  # seconds
NumberedEvent = tuple[int, str, dict[str, Any]]


async def watch_run(store: Store, run_id: str, after: int) -> AsyncGenerator[NumberedEvent]:
    """Yield the events of a run after a number, until it ends.

    The last one is `ended`, also for a deleted run. The events are read from the store, to which every
    replica writes, so it does not matter which of them works on the run. The reports of a tool that
    answers later have the number of the event before them, and the name `progress`.
    """
    number, heard = after, ReportsSeen()
    while True:
        run = await store.runs.get(run_id)  # before the log: all events until the end are in it then
        while page := await store.events.read_after(run_id, number, most=_PAGE):
            for number, document in page:
                name, members = _to_members(document)
                yield number, name, members
        if run is None or run.status in FINAL:
            yield number + 1, "ended", {"status": "deleted" if run is None else run.status}
            return
        if run.status == "suspended":
            for report in heard.new_reports(await store.journal.list_reports(run_id)):
                yield number, "progress", _to_report(report)
        await asyncio.sleep(_LOOK_SUSPENDED if run.status == "suspended" else _LOOK)


def _to_members(document: Any) -> tuple[str, dict[str, Any]]:
    event = event_from_document(document)
    members = asdict(event)
    members.pop("messages", None)  # of the end: they are the conversation, which other routes show
    return event.streamed_name, shown_document(members)


def _to_report(report: CallProgressed) -> dict[str, Any]:
    members = asdict(report)
    found: dict[str, Any] = shown_document({"progress": members.pop("done"), **members})
    return found


async def server_sent(stream: PacedStream[NumberedEvent], keep_alive: float) -> AsyncGenerator[bytes]:
    """Yield events as server-sent events, and keep-alive comments.

    Each has its number as id. A comment is sent after `keep_alive` seconds without an event.
    """
    try:
        async for items in stream.yield_batches(keep_alive):
            yield b"".join(_to_sse(*item) for item in items) or KEEP_ALIVE
    finally:
        await stream.close()


def _to_sse(number: int, name: str, members: dict[str, Any]) -> bytes:
    data = json.dumps({"type": name, "number": number, **members})
    return f"id: {number}\nevent: {name}\ndata: {data}\n\n".encode("ascii")
