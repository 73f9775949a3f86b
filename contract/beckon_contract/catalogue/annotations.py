"""The annotations of an EventType: options of its tool, and the places of its parameters.

The first place with parameters counts. Knative 1.15 and later erase `spec.schemaData` right after creation
(the conversion from v1beta2 to v1beta3 has no field for it). So annotations come first, and the manifest
left behind by `kubectl apply` is the last resort. The conversion preserves a `schema` URI.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from beckon_contract.cloudevents.events import RESERVED
from beckon_contract.fields import FieldProblem
from beckon_contract.knative.delivery import Reference, parse_duration
from beckon_contract.knative.eventtypes import EventType, InvalidEventType, parse_event_type
from beckon_contract.kubernetes_objects import from_object
from beckon_contract.resources.tools import Dispatch, ReplyKind
from beckon_contract.yamltext import NotReadable, read_json

PARAMETERS = "beckon.dev/parameters"
SCHEMA_DATA = "beckon.dev/schema-data"
RETURNS = "beckon.dev/returns"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOWHERE = "none"

MAX_TEXT = 1024 * 1024  # what etcd takes in one object, about
_JSON_TYPES = frozenset({"application/json", "application/schema+json"})
_CHARSETS = frozenset({"utf-8", "us-ascii", "iso-8859-1"})
_CURE = "write the JSON Schema in annotation "


@dataclass(frozen=True, slots=True)
class DecodedParameters:
    """A decoded parameters document and the field it was read from, `NOWHERE` without one."""

    document: object
    place: str


class BrokenPlace(ValueError):
    """A place without a usable parameters document: place, reason and message."""

    def __init__(self, place: str, reason: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place, self.reason, self.message = place, reason, message


def find_parameters(event_type: EventType) -> DecodedParameters:
    """Return the parameters of an EventType as they are written, an empty mapping without any.

    Raises `BrokenPlace` for the first place that is filled and unusable, so that nothing an author wrote is
    silently ignored.
    """
    for place in _places(event_type):
        return place
    applied = last_applied(event_type)
    for place in _places(applied, f"{_annotation(LAST_APPLIED)}, ") if applied else ():
        return place
    if event_type.schema is not None:
        message = f"{event_type.schema[:80]!r} is not fetched; write a data: URI here, or {_CURE}{PARAMETERS}"
        raise BrokenPlace(event_type.schema_field, "RemoteSchema", message)
    return DecodedParameters({}, NOWHERE)


def find_returns(event_type: EventType) -> DecodedParameters | None:
    """Return the schema of an EventType's results as it is written, or `None`; raise `BrokenPlace`."""
    text = event_type.annotations.get(RETURNS, "")
    if not text.strip():
        return None
    place = _annotation(RETURNS)
    return DecodedParameters(decode(text, place, RETURNS), place)


def _places(event_type: EventType, prefix: str = "") -> Iterator[DecodedParameters]:
    """Yield the documents of the filled places.

    They are decoded one by one; `prefix` says which manifest it is.
    """
    for name in (PARAMETERS, SCHEMA_DATA):
        text = event_type.annotations.get(name, "")
        if text.strip():
            place = prefix + _annotation(name)
            yield DecodedParameters(decode(text, place), place)
    if event_type.schema_data is not None:
        place = f"{prefix}spec.schemaData"
        yield DecodedParameters(decode(event_type.schema_data, place), place)
    if event_type.schema is not None and event_type.schema[:5].lower() == "data:":
        place = prefix + event_type.schema_field
        yield DecodedParameters(decode(_open_data_uri(event_type.schema, place), place), place)


def last_applied(event_type: EventType) -> EventType | None:
    """Return the EventType last given to `kubectl apply`, or `None`.

    Raises `BrokenPlace` where the annotation holds no EventType.
    """
    text = event_type.annotations.get(LAST_APPLIED, "")
    if not text.strip():
        return None
    place = _annotation(LAST_APPLIED)
    document = decode(text, place)
    if not isinstance(document, dict):
        raise BrokenPlace(
            place, "NotAManifest", f"holds no Kubernetes object; remove it, or {_CURE}{PARAMETERS}"
        )
    try:
        return parse_event_type(from_object(document, event_type.origin, event_type.namespace))
    except InvalidEventType as error:
        raise BrokenPlace(
            place, "NotAManifest", f"{error}; apply the manifest again, or {_CURE}{PARAMETERS}"
        ) from None
    except ValueError as error:
        raise BrokenPlace(place, "NotAManifest", f"{error}; remove it, or {_CURE}{PARAMETERS}") from None


def _open_data_uri(uri: str, place: str) -> str:
    """Return the text in a `data:` URI (RFC 2397), percent-encoded or base64."""
    head, comma, payload = uri[5:].partition(",")
    if not comma:
        message = "the data: URI has no comma; write data:application/json,…"
        raise BrokenPlace(place, "InvalidDataURI", message)
    media_type, *parameters = [part.strip().lower() for part in head.split(";")]
    if media_type not in _JSON_TYPES:
        message = (
            f"the data: URI is of type {media_type[:40] or 'text/plain'!r}; write application/schema+json"
        )
        raise BrokenPlace(place, "InvalidDataURI", message)
    data = unquote_to_bytes(payload.encode(errors="replace"))
    if "base64" in parameters:
        data = _from_base64(data, place)
    charset = next((p.removeprefix("charset=") for p in parameters if p.startswith("charset=")), "utf-8")
    if charset not in _CHARSETS:
        message = f"the data: URI has charset {charset[:40]!r}; write it in UTF-8"
        raise BrokenPlace(place, "InvalidDataURI", message)
    try:
        return data.decode(charset)
    except UnicodeDecodeError as error:
        raise BrokenPlace(place, "InvalidDataURI", f"the data is not {charset}: {error.reason}") from None


def _from_base64(data: bytes, place: str) -> bytes:
    """Decode base64 in the standard or the URL alphabet, with or without padding."""
    compact = b"".join(data.split()).rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return base64.b64decode(compact + b"=" * (-len(compact) % 4), validate=True)
    except binascii.Error as error:
        raise BrokenPlace(place, "InvalidDataURI", f"the data is not base64: {error}") from None


def decode(text: str, place: str, annotation: str = PARAMETERS) -> object:
    """Return the JSON in a text; raise `BrokenPlace`, whose cure names an annotation.

    Refused are texts that are no JSON, have one name twice, or are longer than `MAX_TEXT` characters.
    """
    if len(text) > MAX_TEXT:
        raise BrokenPlace(place, "TooLarge", f"{len(text)} characters; at most {MAX_TEXT}")
    try:
        return read_json(text)
    except NotReadable as error:
        raise BrokenPlace(place, "NotJson", f"is not JSON: {error}; {_CURE}{annotation}") from None


def _annotation(name: str) -> str:
    return f"metadata.annotations[{name}]"


PREFIX = "beckon.dev/"
TOOL_NAME = "beckon.dev/tool-name"
TIMEOUT = "beckon.dev/timeout"
REQUIRES_APPROVAL = "beckon.dev/requires-approval"
DISPATCH = "beckon.dev/dispatch"
IDEMPOTENT = "beckon.dev/idempotent"
READ_ONLY = "beckon.dev/read-only"
DESTRUCTIVE = "beckon.dev/destructive"
# What of the tool's answer is the reply, and by which attribute a reply names its call.
REPLY = "beckon.dev/reply"
REPLY_ATTRIBUTE = "beckon.dev/reply-attribute"
# How the adapter serves the tool: by a request to an API, a tool of an MCP server, or an A2A agent.
HTTP = "beckon.dev/http"
MCP = "beckon.dev/mcp"
A2A = "beckon.dev/a2a"
# The source from which a program made the manifest, so that it can make it again.
IMPORTED_FROM = "beckon.dev/imported-from"
KNOWN = frozenset(
    {
        PARAMETERS,
        SCHEMA_DATA,
        RETURNS,
        TOOL_NAME,
        TIMEOUT,
        REQUIRES_APPROVAL,
        DISPATCH,
        IDEMPOTENT,
        READ_ONLY,
        DESTRUCTIVE,
        REPLY,
        REPLY_ATTRIBUTE,
        HTTP,
        MCP,
        A2A,
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
_EXTENSION = re.compile(r"[a-z][a-z0-9]{0,19}", re.ASCII)
_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a tool.

    `timeout` is in seconds. `timeout`, `destructive` and `reply_attribute` are `None` if the EventType does
    not name them.
    """

    timeout: float | None
    requires_approval: bool
    dispatch: Dispatch
    idempotent: bool
    read_only: bool
    destructive: bool | None = None
    reply: ReplyKind = "event"
    reply_attribute: str | None = None


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
        reply=_reply(event_type, problems),
        reply_attribute=_reply_attribute(event_type, problems),
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


def _reply(event_type: EventType, problems: list[FieldProblem]) -> ReplyKind:
    text = event_type.annotations.get(REPLY, "event")
    if text not in {"any", "event"}:
        problems.append(_problem(REPLY, f'must be "event" or "any", not {text[:40]!r}'))
    return "any" if text == "any" else "event"


def _reply_attribute(event_type: EventType, problems: list[FieldProblem]) -> str | None:
    name = event_type.annotations.get(REPLY_ATTRIBUTE)
    if name is None:
        return None
    if not _EXTENSION.fullmatch(name):
        message = f"{name[:40]!r} is no name of an attribute; write 1 to 20 of a-z and 0-9, a letter first"
        problems.append(_problem(REPLY_ATTRIBUTE, message))
    elif name in RESERVED:
        message = f"{name!r} is an attribute of CloudEvents itself; name an extension"
        problems.append(_problem(REPLY_ATTRIBUTE, message))
    return name


def is_broker(reference: Reference) -> bool:
    """Return True if a reference names a Knative Broker."""
    return reference.kind == "Broker" and reference.api_version.startswith("eventing.knative.dev/")


def _problem(name: str, message: str) -> FieldProblem:
    return FieldProblem(f"metadata.annotations[{name}]", message)
