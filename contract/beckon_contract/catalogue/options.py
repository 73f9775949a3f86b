"""The options of a tool, from beckon.dev annotations of its EventType."""

import re
from dataclasses import dataclass

from beckon_contract.catalogue.parameter_sources import PARAMETERS, SCHEMA_DATA
from beckon_contract.fields import FieldProblem
from beckon_contract.knative.delivery import Reference, parse_duration
from beckon_contract.knative.eventtypes import EventType, InvalidEventType
from beckon_contract.resources.tools import Dispatch

PREFIX = "beckon.dev/"
TOOL_NAME = "beckon.dev/tool-name"
TIMEOUT = "beckon.dev/timeout"
REQUIRES_APPROVAL = "beckon.dev/requires-approval"
DISPATCH = "beckon.dev/dispatch"
IDEMPOTENT = "beckon.dev/idempotent"
READ_ONLY = "beckon.dev/read-only"
DESTRUCTIVE = "beckon.dev/destructive"
# How the HTTP adapter serves the tool: as a request to an API, or as a tool of an MCP server.
HTTP = "beckon.dev/http"
MCP = "beckon.dev/mcp"
# Whoever made the manifest of something else: what it was made of, so that it can be made again.
IMPORTED_FROM = "beckon.dev/imported-from"
KNOWN = frozenset(
    {
        PARAMETERS,
        SCHEMA_DATA,
        TOOL_NAME,
        TIMEOUT,
        REQUIRES_APPROVAL,
        DISPATCH,
        IDEMPOTENT,
        READ_ONLY,
        DESTRUCTIVE,
        HTTP,
        MCP,
        IMPORTED_FROM,
    }
)
# On a Service: how the local platform runs it, or where it runs already.
LOCAL_COMMAND = "beckon.dev/local-command"
LOCAL_URL = "beckon.dev/local-url"

MAX_TIMEOUT = 86_400.0  # seconds
_GO_PART = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|h|m|s)", re.ASCII)
_GO_DURATION = re.compile(rf"(?:{_GO_PART.pattern})+", re.ASCII)
_PLAIN_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a tool.

    `timeout` is in seconds. `timeout` and `destructive` are `None` if the EventType does not name them.
    """

    timeout: float | None
    requires_approval: bool
    dispatch: Dispatch
    idempotent: bool
    read_only: bool
    destructive: bool | None = None


def read_options(event_type: EventType) -> Options:
    """Read the annotations; raise `InvalidEventType` (reason InvalidAnnotation) with every mistake."""
    problems: list[FieldProblem] = []
    options = Options(
        timeout=_timeout(event_type, problems),
        requires_approval=_boolean(event_type, REQUIRES_APPROVAL, problems),
        dispatch=_dispatch(event_type, problems),
        idempotent=_boolean(event_type, IDEMPOTENT, problems),
        read_only=_boolean(event_type, READ_ONLY, problems),
        destructive=_boolean(event_type, DESTRUCTIVE, problems)
        if DESTRUCTIVE in event_type.annotations
        else None,
    )
    if options.read_only and options.destructive:
        problems.append(_problem(DESTRUCTIVE, f"contradicts {READ_ONLY}; remove one of them"))
    if not event_type.annotations.get(TOOL_NAME, "set").strip():
        problems.append(_problem(TOOL_NAME, "is empty; write a name, or remove the annotation"))
    if problems:
        raise InvalidEventType(problems, "InvalidAnnotation")
    return options


def parse_timeout(text: str) -> float:
    """Return the seconds in `30`, `30s`, `1m30s`, `250ms` or `PT30S`; raise `ValueError` with the cure."""
    text = text.strip()
    if _PLAIN_SECONDS.fullmatch(text):
        seconds = float(text)
    elif _GO_DURATION.fullmatch(text):
        seconds = sum(float(amount) * _UNIT[unit] for amount, unit in _GO_PART.findall(text))
    elif text.startswith("P"):
        seconds = parse_duration(text)
    else:
        raise ValueError(f'{text[:40]!r} is no duration; write "30s", "2m", "1h30m" or "PT30S"')
    if not 0 < seconds <= MAX_TIMEOUT:
        raise ValueError(f'{text[:40]!r} is out of range; write more than 0 and at most "24h"')
    return seconds


def _timeout(event_type: EventType, problems: list[FieldProblem]) -> float | None:
    text = event_type.annotations.get(TIMEOUT)
    if text is None:
        return None
    try:
        return parse_timeout(text)
    except ValueError as error:
        problems.append(_problem(TIMEOUT, str(error)))
        return None


def _boolean(event_type: EventType, name: str, problems: list[FieldProblem]) -> bool:
    text = event_type.annotations.get(name, "false")
    if text not in {"true", "false"}:
        problems.append(_problem(name, f'must be "true" or "false", not {text[:40]!r}'))
    return text == "true"


def _dispatch(event_type: EventType, problems: list[FieldProblem]) -> Dispatch:
    text = event_type.annotations.get(DISPATCH, "broker")
    if text == "broker":
        return "broker"
    if text != "direct":
        problems.append(_problem(DISPATCH, f'must be "broker" or "direct", not {text[:40]!r}'))
    elif event_type.reference is None:
        problems.append(_problem(DISPATCH, "direct needs spec.reference: the service that takes the call"))
    elif is_broker(event_type.reference):
        problems.append(
            _problem(
                DISPATCH, "direct needs spec.reference to name the service that takes the call, not a Broker"
            )
        )
    return "direct"


def is_broker(reference: Reference) -> bool:
    """Return True if a reference names a Knative Broker."""
    return reference.kind == "Broker" and reference.api_version.startswith("eventing.knative.dev/")


def _problem(name: str, message: str) -> FieldProblem:
    return FieldProblem(f"metadata.annotations[{name}]", message)
