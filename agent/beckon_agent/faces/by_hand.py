"""A call by hand that is told of while it is under way, to who takes an event stream."""

import json
from collections.abc import AsyncGenerator, Callable, Coroutine

from starlette.requests import Request
from starlette.responses import Response

from beckon_agent.core.run_types import CallFinished
from beckon_agent.faces.event_stream import KEEP_ALIVE, EventStream, event_bytes
from beckon_agent.faces.hang_up import unless_gone
from beckon_agent.faces.pacing import Pace, Paced
from beckon_agent.tool_calls.progress import ProgressReport, with_reports

Answer = Callable[[CallFinished], Response]
"""Makes the whole answer of a call that has ended."""


async def answered(
    call: Coroutine[object, object, CallFinished], request: Request, pace: Pace, answer: Answer
) -> Response:
    """Return the answer of a call: a stream if the client takes one, from the tool's first report on.

    Its events are `progress`, and at the end `result` or `problem` with what would have been the answer.
    """
    if "text/event-stream" not in request.headers.get("accept", ""):
        return answer(await unless_gone(request.receive, call))
    told = Paced(with_reports(call))
    try:
        first = await unless_gone(request.receive, told.take())
    except BaseException:
        await told.close()
        raise
    if isinstance(first, ProgressReport):
        return EventStream(_server_sent(first, told, pace.keep_alive, answer), pace.stalled)
    await told.close()
    if first is None:
        raise RuntimeError("a call ended without an outcome")
    return answer(first)


async def _server_sent(
    first: ProgressReport, told: Paced[ProgressReport | CallFinished], keep_alive: float, answer: Answer
) -> AsyncGenerator[bytes]:
    try:
        yield _line(first, answer)
        async for items in told.told(keep_alive):
            yield b"".join(_line(item, answer) for item in items) or KEEP_ALIVE
    finally:
        await told.close()


def _line(item: ProgressReport | CallFinished, answer: Answer) -> bytes:
    if isinstance(item, ProgressReport):
        return event_bytes("progress", _report_document(item))
    whole = answer(item)
    return event_bytes("result" if whole.status_code == 200 else "problem", json.loads(bytes(whole.body)))


def _report_document(report: ProgressReport) -> dict[str, object]:
    """Return a report as JSON."""
    return {"progress": report.done, "total": report.total, "message": report.message}
