"""The answers to callers: one function for each end of a call."""

from beckon_contract.cloudevents.events import EventError, EventFormatError
from beckon_runtime.http_messages import Answer, of_problem
from beckon_runtime.posts import Ack
from beckon_runtime.problem import Problem
from beckon_shim.messages import WireEvent

REPLIED = "replied"
# Without a reader: the caller is gone (nginx counts it as 499, too).
HUNG_UP = Answer(499, [], b"", "hung_up")
CALL_PATH = "POST an event to /<namespace>/<broker>"
_RETRY_SECONDS = b"1"
# What is mended by people or controllers, not within a moment.
_LATER_SECONDS = b"3"


def replied(event: WireEvent) -> Answer:
    """Return 200 with the reply event in binary mode."""
    return Answer(200, event.headers(), event.body, REPLIED)


def accepted(event: WireEvent) -> Answer:
    """Return 202 with the tool's acceptance event; the answer comes later."""
    return Answer(202, event.headers(), event.body, "accepted")


def timed_out(seconds: float) -> Answer:
    """Return 504: no reply came in time. The tool may still be working.

    The answer leaves out the call's token, because its reader could answer in the tool's place.
    """
    detail = (
        f"no reply came within {seconds:g} s; the tool may be slow, may not reply, may answer without the "
        "token of the call (docs/eventtypes.md, Services that answer otherwise), or no Trigger may route "
        "this event type to it"
    )
    return of_problem(Problem(504, "timeout", "No reply in time", detail), "timeout")


def outcome_unknown(ack: Ack, url: str, seconds: float) -> Answer:
    """Return 504: the event may have been delivered, and no reply came in time."""
    detail = (
        f"the Broker at {url} did not confirm that it has the event ({ack.describe()}), and no reply came "
        f"within {seconds:g} s; the tool may have run. "
        "Find out whether it did before you post the event again"
    )
    members: dict[str, object] = {"delivered": True}
    if ack.status:
        members["broker_status"] = ack.status
    problem = Problem(504, "outcome-unknown", "Outcome unknown", detail, members)
    return of_problem(problem, "outcome_unknown")


def cut_off() -> Answer:
    """Return 502: the event was posted, and this replica stops before its reply came."""
    detail = (
        "this replica is shutting down and the reply has not come; the tool may have run. "
        "Find out whether it did before you post the event again"
    )
    problem = Problem(502, "outcome-unknown", "Outcome unknown", detail, {"delivered": True})
    return of_problem(problem, "outcome_unknown", (b"connection", b"close"))


def expired() -> Answer:
    """Return 504: the event had expired on arrival and was not sent."""
    detail = "the event's expirytime is past; it was not sent. Set a later one, or none"
    return of_problem(Problem(504, "expired", "Already expired", detail), "expired")


def unaccepted(ack: Ack, url: str) -> Answer:
    """Return 502 or 503: the Broker does not have the event. 503 means a busy Broker, or no token for it."""
    members: dict[str, object] = {"delivered": False}
    detail = f"the Broker at {url} did not accept the event: {ack.describe()}"
    if ack.no_token:
        problem = Problem(503, "no-token", "No token for the Broker", ack.error, members)
        return of_problem(problem, "no_token", (b"retry-after", _LATER_SECONDS))
    if ack.status:
        members["broker_status"] = ack.status
    if ack.status == 403:
        detail += "; with OIDC it lets in callers of its own namespace and those that an EventPolicy names"
    if ack.try_later:
        retry = (b"retry-after", ack.retry_after.encode("latin-1") or _RETRY_SECONDS)
        problem = Problem(503, "broker-busy", "The Broker is busy", detail, members)
        return of_problem(problem, "broker_busy", retry)
    problem = Problem(502, "undeliverable", "Not accepted by the Broker", detail, members)
    return of_problem(problem, "unaccepted")


def reply_too_large(limit: int) -> Answer:
    """Return 502: the tool's reply is over the limit."""
    detail = f"the tool's reply is larger than {limit} bytes; let it answer with less, or raise the limit"
    problem = Problem(502, "reply-too-large", "The reply is too large", detail, {"delivered": True})
    return of_problem(problem, "reply_too_large")


def full(limit: int) -> Answer:
    """Return 503: the limit of waiting calls is reached."""
    detail = f"{limit} calls wait already; try again shortly, or add a replica"
    return of_problem(
        Problem(503, "full", "Too many calls", detail), "full", (b"retry-after", _RETRY_SECONDS)
    )


def draining() -> Answer:
    """Return 503: this replica stops and takes no more calls."""
    problem = Problem(503, "draining", "Shutting down", "this replica is shutting down; call again")
    retry = (b"retry-after", _RETRY_SECONDS)
    return of_problem(problem, "draining", retry, (b"connection", b"close"))


def starting(reason: str) -> Answer:
    """Return 503: the Brokers are not known yet."""
    detail = f"the Brokers are not known yet: {reason}"
    retry = (b"retry-after", _RETRY_SECONDS)
    return of_problem(Problem(503, "starting", "Starting", detail), "starting", retry)


def unaddressed(broker: str, reason: str) -> Answer:
    """Return 503: the Broker exists, but has no address yet."""
    detail = f"the Broker {broker} takes no events now: {reason}"
    problem = Problem(503, "broker-not-ready", "The Broker is not ready", detail)
    return of_problem(problem, "broker_not_ready", (b"retry-after", _LATER_SECONDS))


def unknown_broker(broker: str, hint: str) -> Answer:
    """Return 404: there is no such Broker."""
    detail = f"there is no Broker {broker}; create it, or correct the path{hint}"
    return of_problem(Problem(404, "unknown-broker", "No such Broker", detail), "rejected")


def bad_event(error: EventError) -> Answer:
    """Return 400 for an invalid event, 415 for an unsupported format."""
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
    """Return 404 with a hint at the right path."""
    return of_problem(Problem(404, "not-found", "Nothing here", hint), "rejected")


def no_receipt() -> Answer:
    """Return 404: no reply waits for this receipt here, or not any more."""
    return no_such_path("no reply waits for this receipt; it may have gone to the late reply sink meanwhile")


def wrong_method(allowed: bytes) -> Answer:
    """Return 405 with the allowed methods."""
    detail = f"use {allowed.decode()}"
    return of_problem(
        Problem(405, "method-not-allowed", "Method not allowed", detail), "rejected", (b"allow", allowed)
    )
