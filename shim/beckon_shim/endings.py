"""The answers that callers get: one function for each way in which a call ends."""

from beckon_contract.events import EventError, EventFormatError
from beckon_contract.problem import Problem
from beckon_shim.ack import Ack
from beckon_shim.messages import Answer, of_problem
from beckon_shim.wire import WireEvent

REPLIED = "replied"
# What nobody will read: the caller is gone (nginx counts it as 499, too).
HUNG_UP = Answer(499, [], b"", "hung_up")
_RETRY_SECONDS = b"1"


def replied(event: WireEvent) -> Answer:
    """Return 200 with the reply event in binary mode."""
    return Answer(200, event.headers(), event.body, REPLIED)


def timed_out(seconds: float, token: str) -> Answer:
    """Return 504: no reply came in time. The tool may still be working."""
    detail = (
        f"no reply came within {seconds:g} s; the tool may be slow, may not reply, "
        "or no Trigger may route this event type to it"
    )
    problem = Problem(504, "timeout", "No reply in time", detail, {"correlation": token})
    return of_problem(problem, "timeout")


def expired() -> Answer:
    """Return 504 for an event that had expired before it came; it was not sent."""
    detail = "the event's expirytime is past; it was not sent. Set a later one, or none"
    return of_problem(Problem(504, "expired", "Already expired", detail), "expired")


def unaccepted(ack: Ack, url: str) -> Answer:
    """Return 502, or 503 where the Broker asks to come back: it did not take the event."""
    detail = f"the Broker at {url} did not accept the event: {ack.describe()}"
    members: dict[str, object] = {"delivered": ack.doubtful}
    if ack.status:
        members["broker_status"] = ack.status
    if ack.try_later:
        retry = (b"retry-after", ack.retry_after.encode("latin-1") or _RETRY_SECONDS)
        problem = Problem(503, "broker-busy", "The Broker is busy", detail, members)
        return of_problem(problem, "broker_busy", retry)
    problem = Problem(502, "undeliverable", "Not accepted by the Broker", detail, members)
    return of_problem(problem, "unaccepted")


def reply_too_large(limit: int) -> Answer:
    """Return 502: the tool answered, with more than may pass."""
    detail = f"the tool's reply is larger than {limit} bytes; let it answer with less, or raise the limit"
    problem = Problem(502, "reply-too-large", "The reply is too large", detail, {"delivered": True})
    return of_problem(problem, "reply_too_large")


def full(limit: int) -> Answer:
    """Return 503: as many calls wait as may."""
    detail = f"{limit} calls wait already; try again shortly, or add a replica"
    return of_problem(
        Problem(503, "full", "Too many calls", detail), "full", (b"retry-after", _RETRY_SECONDS)
    )


def draining() -> Answer:
    """Return 503: this replica stops and takes no more calls."""
    problem = Problem(503, "draining", "Shutting down", "this replica is shutting down; call again")
    retry = (b"retry-after", _RETRY_SECONDS)
    return of_problem(problem, "draining", retry, (b"connection", b"close"))


def bad_event(error: EventError) -> Answer:
    """Return 400, or 415 for a format that is not read here: no event that can be sent."""
    if isinstance(error, EventFormatError):
        problem = Problem(415, "unsupported-format", "Unsupported event format", str(error))
    else:
        problem = Problem(400, "bad-event", "Not a valid CloudEvent", str(error))
    return of_problem(problem, "rejected")


def too_large(limit: int) -> Answer:
    """Return 413: the body is over the limit."""
    detail = f"the event is larger than {limit} bytes; pass a reference to the data instead"
    return of_problem(
        Problem(413, "too-large", "Event too large", detail), "rejected", (b"connection", b"close")
    )


def no_such_path(hint: str) -> Answer:
    """Return 404 with what may be asked for here."""
    return of_problem(Problem(404, "not-found", "Nothing here", hint), "rejected")


def wrong_method(allowed: bytes) -> Answer:
    """Return 405 with the methods that are allowed."""
    detail = f"use {allowed.decode()}"
    return of_problem(
        Problem(405, "method-not-allowed", "Method not allowed", detail), "rejected", (b"allow", allowed)
    )
