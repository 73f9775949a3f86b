"""One run of a tool: the arguments read, the function run, its outcome as a reply event.

Plain functions run beside the event loop, in one thread for each running call. They do not run in the
loop's executor: it has only a few threads, so that calls would wait for each other, and at its end the
process would wait for a function that cannot be stopped.
"""

import asyncio
import inspect
import logging
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from datetime import UTC, datetime
from typing import Any

import orjson
from cloudevents.core.v1.event import CloudEvent as PublicEvent
from opentelemetry import trace

from beckon_contract.cloudevents import extensions
from beckon_contract.cloudevents.events import AttributeValue, CloudEvent, EventError
from beckon_contract.cloudevents.extensions import (
    ACCEPTED,
    CAUSE,
    INPUT,
    INPUT_REQUIRED,
    STATE,
    deliveries_attribute,
    is_json,
    parse_timestamp,
)
from beckon_contract.failures import Reason, failure
from beckon_contract.inputs import InvalidInput
from beckon_runtime.tracing import carried, mark_failed
from beckon_tools.answers import INPUT_MARK, NO_ANSWER_YET, NotJson, Ticket, reply_data, to_data
from beckon_tools.declaration import AnyTool
from beckon_tools.errors import OutcomeUnknown, Retry, ToolError
from beckon_tools.expiry import EXPIRY, seconds_left
from beckon_tools.outcomes.ledger import CallKey
from beckon_tools.outcomes.record import Recalled
from beckon_tools.person import InputRequired, Person
from beckon_tools.progress import Progress
from beckon_tools.settings import Settings
from beckon_tools.signature import InvalidArguments


async def in_thread(function: Callable[..., object], arguments: Mapping[str, Any]) -> object:
    """Call a function in a thread, in the context of the caller.

    Raises the exception of the function. If cancelled, it leaves the thread to run on by itself.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[object] = loop.create_future()
    context = copy_context()

    def run_function() -> None:
        try:
            result = context.run(function, **arguments)
        except BaseException as error:
            resolve(_fail_future, error)
        else:
            resolve(_end_future, result)

    def resolve(how: Callable[..., None], value: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: no task waits any more
            loop.call_soon_threadsafe(how, ended, value)

    threading.Thread(target=run_function, name="tool", daemon=True).start()
    return await ended


def _end_future(ended: asyncio.Future[object], result: object) -> None:
    if not ended.done():
        ended.set_result(result)


def _fail_future(ended: asyncio.Future[object], error: BaseException) -> None:
    if ended.done():
        return
    if isinstance(error, StopIteration):  # a future cannot hold one
        error = RuntimeError(f"the function raised {error!r}")
    ended.set_exception(error)


logger = logging.getLogger(__name__)

_PASSWORD = re.compile(r"://[^\s/@]+@")  # of an address: drivers of databases repeat it
_LONGEST = 4000  # characters of an error for a model: a page of text, about a thousand tokens


class OutOfTime(Exception):
    """The call expired before the function had ended."""


class IdempotentFault(Exception):
    """An exception in an idempotent tool; the message names it. Another run of the function does no harm."""


async def run_call(tool: AnyTool, call: CloudEvent, settings: Settings) -> bytes:
    """Run the tool on a call and return the data of the reply.

    A refusal and an exception of the function are results, too: the failure `invalid_arguments`, or
    `tool_failed` with the exception's type and message. `NO_ANSWER_YET` is the data of a call that is
    answered later, and data after `INPUT_MARK` is a form for a person.

    Raises `Retry` if the function does, and `IdempotentFault` for an exception in a tool with the hint
    `idempotent`.
    """
    try:
        arguments = _read_arguments(tool, call, settings)
        logger.info("running %s for event %s from %s", tool.name, call.id, call.source)
        data = await _run_outcome(tool, call, arguments)
    except (InvalidArguments, EventError, InvalidInput) as error:
        return refusal_data(tool, call, error)
    except ToolError as error:
        message = shorten_message(str(error))
        logger.info("%s refused event %s: %s", tool.name, call.id, message)
        reason = Reason.OUTCOME_UNKNOWN if isinstance(error, OutcomeUnknown) else Reason.TOOL_FAILED
        return failure_data(reason, message)
    except OutOfTime:
        logger.warning("event %s expired while %s ran, and was given up", call.id, tool.name)
        return failure_data(Reason.TIMEOUT, "the call expired while the tool ran; the tool was stopped")
    except NotJson as error:
        # Not left to the broker to retry: what the function did would be done again, in vain.
        logger.exception("%s returned what JSON cannot say", tool.name)
        return failure_data(
            Reason.TOOL_FAILED,
            f"the tool ran, but its result cannot be written as JSON: {shorten_message(str(error))}",
        )
    except Retry:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        return _fault_data(tool, call, error)
    limit = settings.reply_limit
    if len(data) > limit:
        message = f"the tool ran, but its result of {len(data)} bytes is above the limit of {limit}"
        return failure_data(Reason.TOOL_FAILED, message)
    return data


def _read_arguments(tool: AnyTool, call: CloudEvent, settings: Settings) -> dict[str, object]:
    """Return the arguments of the function: those of the caller, and those that no caller sets.

    Raises `InvalidArguments` and `EventError` for a bad call.
    """
    if not is_json(call.datacontenttype):
        raise EventError(f"the arguments must be application/json, not {call.datacontenttype!r}")
    arguments = tool.signature.read(call.data)
    arguments.update(_given_arguments(tool, call, settings))
    return arguments


def refusal_data(tool: AnyTool, call: CloudEvent, error: Exception) -> bytes:
    """Return the reply data for a call that the tool cannot run as it is, such as for bad arguments.

    A reply and not an error status: a Broker may lose the status and its text (Knative's JetStream channel
    and RabbitMQ Broker do), and then the caller waits until its deadline.
    """
    message = shorten_message(str(error))
    logger.info("%s refused event %s: %s", tool.name, call.id, message)
    mark_failed(trace.get_current_span(), type(error).__name__)
    return failure_data(Reason.INVALID_ARGUMENTS, message)


async def _run_outcome(tool: AnyTool, call: CloudEvent, arguments: Mapping[str, Any]) -> bytes:
    """Return the function's result as data, or an earlier run's.

    The tool has recorded the latter in a call record. A function that needs input of a person has its form
    for an outcome.
    """
    try:
        result = await _run_until_expiry(tool, arguments, seconds_left(call))
    except Recalled as recalled:
        logger.info("event %s has its outcome from an earlier delivery to %s", call.id, tool.name)
        return recalled.data
    except InputRequired as needed:
        logger.info("%s needs input of a person for event %s", tool.name, call.id)
        return INPUT_MARK + to_data(needed.request.to_document())
    return reply_data(result)


def _fault_data(tool: AnyTool, call: CloudEvent, error: BaseException) -> bytes:
    """Return the failure data of an exception, or raise `IdempotentFault`.

    It is unknown what the function did before it raised: another delivery could do that again.
    """
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error  # the run itself is ended
    logger.error("the tool %s failed on event %s", tool.name, call.id, exc_info=error)
    text = shorten_message("; ".join(_error_texts(error)))
    mark_failed(trace.get_current_span(), type(error).__name__)
    if tool.hints.idempotent:
        raise IdempotentFault(text) from None
    return failure_data(Reason.TOOL_FAILED, text)


def _error_texts(error: BaseException) -> Iterator[str]:
    """Yield type and message of an exception, or of each in a group, as a TaskGroup raises."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _error_texts(inner)
    else:
        name = type(error).__name__
        try:
            text = str(error)
        except Exception:  # its own fault: a text is all that is wanted
            text = ""
        yield f"{name}: {_PASSWORD.sub('://[hidden]@', text)}" if text else name


def _given_arguments(tool: AnyTool, call: CloudEvent, settings: Settings) -> dict[str, object]:
    """Return the arguments not set by callers, by parameter name.

    These are the event, its record, its person, its ticket and its progress, as far as the function takes
    them.
    """
    signature, values = tool.signature, dict[str, object]()
    if signature.event_parameter is not None:
        values[signature.event_parameter] = to_public(call)
    if signature.record_parameter is not None:
        name, record = signature.record_parameter
        values[name] = record(CallKey(tool.name, call.source, call.id))
    if signature.person_parameter is not None:
        values[signature.person_parameter] = Person(call.extensions.get(INPUT))
    if signature.ticket_parameter is not None or signature.progress_parameter is not None:
        reply = reply_event(tool, call, NO_ANSWER_YET, settings.correlation_names)
        if signature.ticket_parameter is not None:
            values[signature.ticket_parameter] = Ticket.of(
                reply, settings.reply_attribute, settings.outbox, str(call.extensions.get(EXPIRY, ""))
            )
        if signature.progress_parameter is not None:
            progress = Progress.of(reply, tool.type, settings)
            values[signature.progress_parameter] = progress
    return values


async def _run_until_expiry(tool: AnyTool, arguments: Mapping[str, Any], seconds: float | None) -> object:
    """Run the function until its call expires; then raise `OutOfTime`.

    A plain function runs in a thread. Threads cannot be stopped: after the time limit it runs on by
    itself, and its result is dropped.
    """
    try:
        async with asyncio.timeout(seconds) as limit:
            if inspect.iscoroutinefunction(tool.function):
                return await tool.function(**arguments)
            result = await in_thread(tool.function, arguments)
            return await result if inspect.isawaitable(result) else result
    except TimeoutError:
        if limit.expired():
            raise OutOfTime from None
        raise


def shorten_message(message: str) -> str:
    """Return a message for the model, cut to `_LONGEST` characters."""
    message = message.encode("utf-8", "replace").decode()  # half a character is no JSON
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1].rstrip() + "…"


def to_public(call: CloudEvent) -> PublicEvent:
    """Return the call as an event of the `cloudevents` package.

    Its data are the received bytes.
    """
    attributes = dict[str, object](call.attributes())
    if call.time is not None:
        attributes["time"] = parse_timestamp(call.time)
    return PublicEvent(attributes, call.data)


# Travel from the call to its reply: the trace (CloudEvents distributed tracing extension), and
# the counters by which brokers and agents break loops.
_CARRIED = ("traceparent", "tracestate", "knativebrokerttl", *extensions.CARRIED)


def reply_event(
    tool: AnyTool, call: CloudEvent, data: bytes, correlation: tuple[str, str], deliveries: int = 1
) -> CloudEvent:
    """Build the reply to a call after a number of deliveries.

    `correlation` is the attribute to take from the call and the extension that returns its value; a call
    without it is answered as well, for other listeners. With `NO_ANSWER_YET` for data the reply says that
    the call is accepted; with data after `INPUT_MARK`, that it needs input.
    """
    received, returned = correlation
    attributes = call.attributes()
    extensions: dict[str, AttributeValue] = {
        name: call.extensions[name] for name in _CARRIED if name in call.extensions
    }
    extensions |= carried()  # the reply belongs to the span in which the call was processed
    extensions |= deliveries_attribute(deliveries)
    extensions[CAUSE] = call.id
    if data == NO_ANSWER_YET:
        extensions[STATE] = ACCEPTED
    elif data.startswith(INPUT_MARK):
        extensions[STATE], data = INPUT_REQUIRED, data.removeprefix(INPUT_MARK)
    if received in attributes:
        extensions[returned] = attributes[received]
    return CloudEvent(
        id=str(uuid.uuid4()),
        source=tool.source,
        type=tool.reply_type,
        datacontenttype="application/json" if data else None,
        time=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        data=data or None,
        extensions=extensions,
    )


def failure_data(reason: Reason, message: str) -> bytes:
    """Return the reply data for a failure."""
    return orjson.dumps(failure(reason, message))
