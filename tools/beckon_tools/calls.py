"""One run of a tool: the arguments read, the function awaited, its outcome as the data of a reply."""

import logging
from datetime import datetime

from cloudevents.core.v1.event import CloudEvent as PublicEvent

from beckon_contract.events import CloudEvent, EventError, is_json
from beckon_contract.failures import Reason
from beckon_tools.declaration import AnyTool
from beckon_tools.errors import ToolError
from beckon_tools.later import Later, Ticket
from beckon_tools.replies import NO_ANSWER_YET, failure_data, reply_event
from beckon_tools.results import NotJson, to_data
from beckon_tools.settings import Settings

logger = logging.getLogger(__name__)


async def run_call(tool: AnyTool, call: CloudEvent, settings: Settings) -> bytes:
    """Run the tool on a call and return the data of the reply, `ToolError` told as a failure.

    `NO_ANSWER_YET` is that of a call which is answered later.

    Raises `InvalidArguments` and `EventError` for a bad call, and whatever the function raises.
    """
    if not is_json(call.datacontenttype):
        raise EventError(f"the arguments must be application/json, not {call.datacontenttype!r}")
    arguments = tool.signature.read(call.data)
    if tool.signature.event_parameter is not None:
        arguments[tool.signature.event_parameter] = to_public(call)
    if tool.signature.ticket_parameter is not None:
        reply = reply_event(tool, call, NO_ANSWER_YET, settings.correlation)
        arguments[tool.signature.ticket_parameter] = Ticket.of(reply)
    logger.info("running %s for event %s from %s", tool.name, call.id, call.source)
    try:
        result = await tool.function(**arguments)
        data = NO_ANSWER_YET if isinstance(result, Later) else to_data(result)
    except ToolError as error:
        logger.info("%s told event %s: %s", tool.name, call.id, error)
        return failure_data(Reason.TOOL_FAILED, str(error))
    except NotJson:
        # Not left to the broker to retry: what the function did would be done again, in vain.
        logger.exception("%s returned what JSON cannot say", tool.name)
        return failure_data(Reason.TOOL_FAILED, "the tool ran, but its result cannot be written as JSON")
    limit = settings.reply_limit
    if len(data) > limit:
        message = f"the tool ran, but its result of {len(data)} bytes is above the limit of {limit}"
        return failure_data(Reason.TOOL_FAILED, message)
    return data


def to_public(call: CloudEvent) -> PublicEvent:
    """Return the call event as the `cloudevents` package has it, data as the bytes that came."""
    attributes = dict[str, object](call.attributes())
    if call.time is not None:
        attributes["time"] = _time(call.time)
    return PublicEvent(attributes, call.data)


def _time(written: str) -> datetime:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise EventError(f"the attribute time {written!r} is no RFC 3339 time")
    return moment
