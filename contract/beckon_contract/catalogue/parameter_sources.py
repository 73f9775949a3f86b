"""The places of a tool's parameters on its EventType.

The first place with parameters counts.

Knative 1.15 and later erase `spec.schemaData` right after creation (the conversion from v1beta2
to v1beta3 has no field for it), which is why annotations come first and why the manifest that
`kubectl apply` leaves behind is the last resort. What the conversion keeps is a `schema` URI.
"""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from beckon_contract.knative.eventtypes import EventType, InvalidEventType, parse_event_type
from beckon_contract.kubernetes_objects import from_object
from beckon_contract.yamltext import NotReadable, read_json

PARAMETERS = "beckon.dev/parameters"
SCHEMA_DATA = "beckon.dev/schema-data"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NOWHERE = "none"

MAX_TEXT = 1024 * 1024  # what etcd takes in one object, about
_JSON_TYPES = frozenset({"application/json", "application/schema+json"})
_CHARSETS = frozenset({"utf-8", "us-ascii", "iso-8859-1"})
_CURE = f"write the JSON Schema in annotation {PARAMETERS}"


@dataclass(frozen=True, slots=True)
class Found:
    """A decoded parameters document and the field it was read from, `NOWHERE` without one."""

    document: object
    place: str


class BrokenPlace(ValueError):
    """A place without a usable parameters document: place, reason and message."""

    def __init__(self, place: str, reason: str, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place, self.reason, self.message = place, reason, message


def find_parameters(event_type: EventType) -> Found:
    """Return the parameters of an EventType as they are written, an empty mapping without any.

    Raises `BrokenPlace` for the first place that is filled and unusable, so that nothing an author wrote is
    silently ignored.
    """
    for found in _places(event_type):
        return found
    applied = last_applied(event_type)
    for found in _places(applied, f"{_annotation(LAST_APPLIED)}, ") if applied else ():
        return found
    if event_type.schema is not None:
        message = f"{event_type.schema[:80]!r} is not fetched; write a data: URI here, or {_CURE}"
        raise BrokenPlace(event_type.schema_field, "RemoteSchema", message)
    return Found({}, NOWHERE)


def _places(event_type: EventType, prefix: str = "") -> Iterator[Found]:
    """Yield the documents of the filled places.

    They are decoded one by one; `prefix` says which manifest it is.
    """
    for name in (PARAMETERS, SCHEMA_DATA):
        text = event_type.annotations.get(name, "")
        if text.strip():
            place = prefix + _annotation(name)
            yield Found(decode(text, place), place)
    if event_type.schema_data is not None:
        place = f"{prefix}spec.schemaData"
        yield Found(decode(event_type.schema_data, place), place)
    if event_type.schema is not None and event_type.schema[:5].lower() == "data:":
        place = prefix + event_type.schema_field
        yield Found(decode(_open_data_uri(event_type.schema, place), place), place)


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
        raise BrokenPlace(place, "NotAManifest", f"holds no Kubernetes object; remove it, or {_CURE}")
    try:
        return parse_event_type(from_object(document, event_type.origin, event_type.namespace))
    except InvalidEventType as error:
        raise BrokenPlace(place, "NotAManifest", f"{error}; apply the manifest again, or {_CURE}") from None
    except ValueError as error:
        raise BrokenPlace(place, "NotAManifest", f"{error}; remove it, or {_CURE}") from None


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


def decode(text: str, place: str) -> object:
    """Return the JSON in a text; raise `BrokenPlace`.

    Refused are texts that are no JSON, have one name twice, or are longer than `MAX_TEXT` characters.
    """
    if len(text) > MAX_TEXT:
        raise BrokenPlace(place, "TooLarge", f"{len(text)} characters; at most {MAX_TEXT}")
    try:
        return read_json(text)
    except NotReadable as error:
        raise BrokenPlace(place, "NotJson", f"is not JSON: {error}; {_CURE}") from None


def _annotation(name: str) -> str:
    return f"metadata.annotations[{name}]"
