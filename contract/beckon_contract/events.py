"""CloudEvents 1.0 in the HTTP protocol binding, binary and structured mode.

Data stays the bytes that came, so that relaying an event never changes it.
Headers are the raw pairs that ASGI and aiohttp use. Written against the HTTP
protocol binding (sections 3.1 and 3.2) and the JSON event format of CloudEvents
1.0.2; the `cloudevents` package is the oracle of its tests where it is right.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote_from_bytes, unquote_to_bytes

import orjson

AttributeValue = str | int | bool
RawHeaders = Iterable[tuple[bytes, bytes]]

STRUCTURED_TYPE = "application/cloudevents+json"
_BATCH_PREFIX = "application/cloudevents-batch"
_STRUCTURED_PREFIX = "application/cloudevents"
_NAME = re.compile(r"[a-z0-9]+\Z")
_REQUIRED = ("id", "source", "type")
_OPTIONAL = ("datacontenttype", "dataschema", "subject", "time")
_STRINGS = (*_REQUIRED, *_OPTIONAL)
_PLAIN = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')


class EventError(ValueError):
    """What came is not a CloudEvent; the message says which attribute is wrong."""


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """One CloudEvent: its context attributes, and its data as the bytes that travel."""

    id: str
    source: str
    type: str
    data: bytes | None = None
    datacontenttype: str | None = None
    dataschema: str | None = None
    subject: str | None = None
    time: str | None = None
    extensions: Mapping[str, AttributeValue] = field(default_factory=dict)

    def attributes(self) -> dict[str, AttributeValue]:
        """Return every context attribute that is present, by its CloudEvents name."""
        present: dict[str, AttributeValue] = {
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
        }
        for name in _OPTIONAL:
            value = getattr(self, name)
            if value is not None:
                present[name] = value
        present.update(self.extensions)
        return present

    def extended(self, **extensions: AttributeValue) -> "CloudEvent":
        """Return a copy with these extension attributes set."""
        for name in extensions:
            _check_name(name)
        return replace(self, extensions={**self.extensions, **extensions})

    def without(self, *names: str) -> "CloudEvent":
        """Return a copy without these extension attributes."""
        kept = {name: value for name, value in self.extensions.items() if name not in names}
        return replace(self, extensions=kept)

    def json(self) -> object:
        """Return the data parsed as JSON, `None` where there is none.

        Raises `EventError` where the data is not JSON.
        """
        if not self.data:
            return None
        try:
            return orjson.loads(self.data)
        except orjson.JSONDecodeError as error:
            raise EventError(f"the data of event {self.id!r} is not JSON: {error}") from None


def is_event(headers: RawHeaders) -> bool:
    """Whether these HTTP headers announce a CloudEvent, in either mode."""
    found = {name.lower(): value for name, value in headers}
    content_type = found.get(b"content-type", b"").decode("latin-1").lower()
    return content_type.startswith(_STRUCTURED_PREFIX) or b"ce-specversion" in found


def from_http(headers: RawHeaders, body: bytes) -> CloudEvent:
    """Read the CloudEvent in an HTTP message, in whichever mode it came.

    Raises `EventError` for anything else, batches included.
    """
    found = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in headers}
    content_type = found.get("content-type", "").strip()
    if content_type.lower().startswith(_BATCH_PREFIX):
        raise EventError("a batch of events is not accepted; send them one by one")
    if content_type.lower().startswith(_STRUCTURED_PREFIX):
        return from_structured(body, content_type)
    attributes: dict[str, AttributeValue] = {
        name[3:]: _decode_header(name, value) for name, value in found.items() if name.startswith("ce-")
    }
    attributes.pop("datacontenttype", None)
    if content_type:
        attributes["datacontenttype"] = content_type
    return _build(attributes, body or None)


def from_structured(body: bytes, content_type: str = STRUCTURED_TYPE) -> CloudEvent:
    """Read an event in the JSON event format."""
    media_type = content_type.split(";")[0].strip().lower()
    if media_type != STRUCTURED_TYPE:
        raise EventError(f"the event format {media_type!r} is not supported; send {STRUCTURED_TYPE}")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise EventError(f"the structured event is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise EventError("the structured event is not a JSON object")
    data = _take_data(document)
    return _build({name: value for name, value in document.items() if value is not None}, data)


def to_binary(event: CloudEvent) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of an event in binary mode."""
    headers = [
        (f"ce-{name}", encode_header(_to_text(value)))
        for name, value in event.attributes().items()
        if name != "datacontenttype"
    ]
    if event.datacontenttype is not None:
        headers.append(("content-type", event.datacontenttype))
    return headers, event.data or b""


def to_structured(event: CloudEvent) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of an event in structured mode, as JSON."""
    document: dict[str, object] = dict(event.attributes())
    if event.data is not None:
        if is_json(event.datacontenttype):
            try:
                document["data"] = orjson.Fragment(_checked_json(event.data))
            except orjson.JSONDecodeError:
                raise EventError(f"the data of event {event.id!r} is declared JSON and is not") from None
        else:
            document["data_base64"] = base64.b64encode(event.data).decode()
    return [("content-type", STRUCTURED_TYPE)], orjson.dumps(document)


def is_json(content_type: str | None) -> bool:
    """Whether data of this type is JSON; an absent type means JSON (JSON format, section 3.1)."""
    if content_type is None:
        return True
    media_type = content_type.split(";")[0].strip().lower()
    return media_type.endswith(("/json", "+json"))


def encode_header(value: str) -> str:
    """Percent-encode an attribute value for a header (HTTP binding, 3.1.3.2)."""
    if value.isascii() and not any(char in ' "%' or char < " " or char == "\x7f" for char in value):
        return value
    return quote_from_bytes(value.encode(), safe=_PLAIN)


def _decode_header(name: str, value: str) -> str:
    """Undo `encode_header`: quotes first, then one round of percent-decoding."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    if "%" not in value and value.isascii():
        return value
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise EventError(f"the header {name} is not UTF-8 after percent-decoding") from None


def _take_data(document: dict[str, object]) -> bytes | None:
    if "data_base64" in document:
        if "data" in document:
            raise EventError("an event has data or data_base64, not both")
        encoded = document.pop("data_base64")
        try:
            return base64.b64decode(str(encoded), validate=True)
        except ValueError:
            raise EventError("data_base64 is not Base64") from None
    if "data" not in document:
        return None
    data = document.pop("data")
    content_type = document.get("datacontenttype")
    if isinstance(data, str) and isinstance(content_type, str) and not is_json(content_type):
        return data.encode()
    return orjson.dumps(data)


def _checked_json(data: bytes) -> bytes:
    orjson.loads(data)
    return data


def _build(attributes: dict[str, AttributeValue], data: bytes | None) -> CloudEvent:
    version = attributes.pop("specversion", None)
    if version is None:
        raise EventError("not a CloudEvent: the attribute 'specversion' is missing")
    if version != "1.0":
        raise EventError(f"specversion {version!r} is not supported; send 1.0")
    core = {name: _take_text(attributes, name) for name in _STRINGS if name in attributes}
    for name in _REQUIRED:
        if not core.get(name):
            raise EventError(f"the attribute {name!r} is missing or empty")
    for name, value in attributes.items():
        _check_name(name)
        if not isinstance(value, str | int | bool):
            raise EventError(f"the extension attribute {name!r} is neither string, integer nor boolean")
    return CloudEvent(**core, data=data, extensions=attributes)


def _take_text(attributes: dict[str, AttributeValue], name: str) -> str:
    value = attributes.pop(name)
    if not isinstance(value, str):
        raise EventError(f"the attribute {name!r} is not a string")
    return value


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise EventError(f"the attribute name {name!r} has other characters than a-z and 0-9")


def _to_text(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
