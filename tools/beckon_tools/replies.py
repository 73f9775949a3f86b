"""The answers to a call: reply events, and problems that fit a broker's dead letter."""

import uuid
from datetime import UTC, datetime

import orjson

from beckon_contract.events import AttributeValue, CloudEvent
from beckon_contract.failures import Reason, failure
from beckon_contract.problem import Problem
from beckon_tools.declaration import AnyTool

# A dead-lettered error body above 768 bytes crashes Knative's in-memory channel dispatcher
# (eventing-natss#434); 512 leave room for what proxies add.
PROBLEM_LIMIT = 512

# Travel from the call to its reply: the trace (CloudEvents distributed tracing extension), and
# the hop counter by which brokers break loops.
_CARRIED = ("traceparent", "tracestate", "knativebrokerttl")


def reply_event(tool: AnyTool, call: CloudEvent, data: bytes, correlation: tuple[str, str]) -> CloudEvent:
    """Build the reply to a call.

    `correlation` is the attribute to take from the call and the extension that returns its value;
    a call without it is answered all the same, for whoever listens.
    """
    taken, returned = correlation
    attributes = call.attributes()
    extensions: dict[str, AttributeValue] = {
        name: call.extensions[name] for name in _CARRIED if name in call.extensions
    }
    extensions["causationid"] = call.id
    if taken in attributes:
        extensions[returned] = attributes[taken]
    return CloudEvent(
        id=str(uuid.uuid4()),
        source=tool.source,
        type=tool.reply_type,
        datacontenttype="application/json",
        time=datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        data=data,
        extensions=extensions,
    )


def failure_data(reason: Reason, message: str) -> bytes:
    """Return the data of a reply that tells of a failure."""
    return orjson.dumps(failure(reason, message))


def bounded_body(problem: Problem) -> bytes:
    """Return the problem as JSON of at most `PROBLEM_LIMIT` bytes, its detail cut where it must."""
    body = problem.body()
    kept = len(problem.detail)
    while len(body) > PROBLEM_LIMIT and kept:
        # Every excess byte costs at least a sixth of a character, six being JSON's longest escape.
        kept = max(0, kept - max(1, (len(body) - PROBLEM_LIMIT) // 6))
        shorter = problem.detail[:kept].rstrip() + "…"
        body = Problem(problem.status, problem.slug, problem.title, shorter).body()
    return body
