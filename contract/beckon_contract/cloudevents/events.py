"""CloudEvents in the HTTP protocol binding, binary and structured mode: 1.0, and 0.3 for a broker.

Data stays the bytes that came, so that relaying an event never changes it.
Headers are the raw pairs that ASGI and aiohttp use. Written against the core
specification, the HTTP protocol binding (sections 3.1 and 3.2) and the JSON event
format of CloudEvents 1.0.2; the `cloudevents` package is the oracle of its tests where
it is right.
"""

import base64
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import quote_from_bytes, unquote_to_bytes

import orjson

from beckon_contract.cloudevents.extensions import is_json, is_media_type, is_timestamp, to_text
from beckon_contract.jsontext import NotJsonError, loads, members

AttributeValue = str | int | bool
RawHeaders = Iterable[tuple[bytes, bytes]]

STRUCTURED_TYPE = "application/cloudevents+json"
CURRENT = ("1.0",)
"""The version of CloudEvents that is read and written."""

RELAYED = (*CURRENT, "0.3")
"""The versions that a broker takes, and delivers as they are: those of Knative's conformance tests."""

_ENCODING = "datacontentencoding"  # of 0.3, whose JSON format has no data_base64
_BATCH_PREFIX = "application/cloudevents-batch"
_STRUCTURED_PREFIX = "application/cloudevents"
_NAME = re.compile(r"[a-z0-9]+\Z")
_NAMES = re.compile(r"[a-z0-9]+(?:\n[a-z0-9]+)*\Z")
_REQUIRED = ("id", "source", "type")
_OPTIONAL = ("datacontenttype", "dataschema", "subject", "time")
RESERVED = frozenset((*_REQUIRED, *_OPTIONAL, "specversion", "data"))
"""The names that no extension attribute may have."""

_INT32 = range(-(2**31), 2**31)
# What the String type excludes (core, "Type System"): control characters,
# unpaired surrogates and noncharacters.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF))
    + "]"
)
_PLAIN = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')
_ALL_PLAIN = re.compile(f"[{re.escape(_PLAIN)}]*\\Z")

_NO_MEDIA_TYPE = "the attribute 'datacontenttype' is no media type: '{:.60}'; send one like application/json"


class EventError(ValueError):
    """An invalid CloudEvent; the message names the wrong attribute."""


class EventFormatError(EventError):
    """An event in an unsupported format: a batch, or not JSON."""


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """One CloudEvent: its context attributes, and its data as bytes.

    Raises `EventError` for attributes that CloudEvents 1.0 does not allow, so an event
    that exists can always be written in either mode. The attributes that only 0.3 has are extensions here.
    """

    id: str
    source: str
    type: str
    data: bytes | None = None
    datacontenttype: str | None = None
    dataschema: str | None = None
    subject: str | None = None
    time: str | None = None
    extensions: Mapping[str, AttributeValue] = field(default_factory=dict)
    specversion: str = "1.0"

    def __post_init__(self) -> None:
        if not _is_plain_ascii(self):
            _check(self)
        if not is_media_type(self.datacontenttype, subtype=False):
            raise EventError(_NO_MEDIA_TYPE.format(self.datacontenttype))
        if self.time is not None and not (type(self.time) is str and is_timestamp(self.time)):
            raise EventError("the attribute 'time' is not a timestamp of RFC 3339, like 2026-01-31T09:30:00Z")

    def attributes(self) -> dict[str, AttributeValue]:
        """Return the present context attributes, by their CloudEvents names."""
        present: dict[str, AttributeValue] = {
            "specversion": self.specversion,
            "id": self.id,
            "source": self.source,
            "type": self.type,
        }
        if self.datacontenttype is not None:
            present["datacontenttype"] = self.datacontenttype
        if self.dataschema is not None:
            present["dataschema"] = self.dataschema
        if self.subject is not None:
            present["subject"] = self.subject
        if self.time is not None:
            present["time"] = self.time
        present.update(self.extensions)
        return present

    def extended(self, **extensions: AttributeValue) -> "CloudEvent":
        """Return a copy with these extension attributes set. Only they are checked: the rest was before."""
        for name, value in extensions.items():
            _check_extension(name, value)
        return self._copy({**self.extensions, **extensions})

    def without(self, *names: str) -> "CloudEvent":
        """Return the event without these extension attributes."""
        if self.extensions.keys().isdisjoint(names):
            return self
        return self._copy({name: value for name, value in self.extensions.items() if name not in names})

    def _copy(self, extensions: Mapping[str, AttributeValue]) -> "CloudEvent":
        copy = object.__new__(CloudEvent)
        for name in CloudEvent.__slots__:
            object.__setattr__(copy, name, extensions if name == "extensions" else getattr(self, name))
        return copy

    def json(self) -> object:
        """Return the data parsed as JSON, `None` without data.

        Integers of any length stay exact. Raises `EventError` if the data is not JSON; NaN and infinities
        are not.
        """
        if not self.data:
            return None
        try:
            return loads(self.data)
        except NotJsonError as error:
            raise EventError(f"the data of event {self.id!r} is not JSON: {error}") from None


def is_event(headers: RawHeaders) -> bool:
    """Return True if these HTTP headers announce a CloudEvent, in either mode."""
    by_name = {name.lower(): value for name, value in headers}
    content_type = by_name.get(b"content-type", b"").strip().lower()
    return content_type.startswith(_STRUCTURED_PREFIX.encode()) or b"ce-specversion" in by_name


def from_http(
    headers: RawHeaders, body: bytes, *, relayed: bool = False, versions: Container[str] = CURRENT
) -> CloudEvent:
    """Read the CloudEvent in an HTTP message, in either mode.

    A `relayed` event needs no slash in its data content type: Knative's ingress takes it so. `versions` are
    those of the specification that are accepted. Raises `EventError` for anything else, batches included.
    """
    pairs = [
        (meaning, value.decode("latin-1"))
        for name, value in headers
        if (meaning := _header_meaning(name)) is not None
    ]
    attributes = dict(pairs)
    content_type = attributes.pop("content-type", "").strip()
    if content_type[: len(_STRUCTURED_PREFIX)].lower() == _STRUCTURED_PREFIX:
        return from_structured(body, content_type, relayed=relayed, versions=versions)
    if len(attributes) < len(pairs) - bool(content_type):
        _refuse_repeated(pairs)
    every = "".join(attributes.values())
    if "%" in every or '"' in every or not every.isascii():
        attributes = {name: _decode_header(name, value) for name, value in attributes.items()}
    # In binary mode the content type is the attribute, whatever a header of that name says.
    attributes.pop("datacontenttype", None)
    if content_type:
        attributes["datacontenttype"] = content_type
    return _received(_build(attributes, body or None, versions), relayed=relayed)


def from_structured(
    body: bytes,
    content_type: str = STRUCTURED_TYPE,
    *,
    relayed: bool = False,
    versions: Container[str] = CURRENT,
) -> CloudEvent:
    """Read an event in the JSON event format. JSON data keeps the very text that it has in the document."""
    media_type = content_type.split(";", maxsplit=1)[0].strip().lower()
    if media_type.startswith(_BATCH_PREFIX):
        raise EventFormatError("a batch of events is not accepted; send them one by one")
    if media_type != STRUCTURED_TYPE:
        raise EventFormatError(f"the event format {media_type!r} is not supported; send {STRUCTURED_TYPE}")
    try:
        texts = members(body)
        data_text = texts.pop("data", None)
        document = {name: orjson.loads(text) for name, text in texts.items()}
    except (NotJsonError, orjson.JSONDecodeError) as error:
        raise EventError(f"the structured event is not a JSON object: {error}") from None
    data = _take_data(document, data_text)
    attributes = {name: value for name, value in document.items() if value is not None}
    if data is not None:
        # Core, datacontenttype: a JSON-format event without it is exactly the one with it.
        attributes.setdefault("datacontenttype", "application/json")
    return _received(_build(attributes, data, versions), relayed=relayed)


def to_binary(event: CloudEvent) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of an event in binary mode."""
    headers = [
        (f"ce-{name}", encode_header(value if isinstance(value, str) else to_text(value)))
        for name, value in event.attributes().items()
        if name != "datacontenttype"
    ]
    if event.datacontenttype is not None:
        headers.append(("content-type", event.datacontenttype))
    return headers, event.data or b""


def to_structured(event: CloudEvent) -> tuple[list[tuple[str, str]], bytes]:
    """Return the headers and the body of an event in structured mode, as JSON.

    Data that is declared JSON and is not travels as `data_base64`, unchanged.
    """
    document: dict[str, object] = dict(event.attributes())
    if event.data is not None:
        if is_json(event.datacontenttype) and _parses(event.data):
            document["data"] = orjson.Fragment(event.data)
        elif event.specversion == "0.3":
            document |= {_ENCODING: "base64", "data": base64.b64encode(event.data).decode()}
        else:
            document["data_base64"] = base64.b64encode(event.data).decode()
    return [("content-type", STRUCTURED_TYPE)], orjson.dumps(document)


def encode_header(value: str) -> str:
    """Percent-encode an attribute value for a header (HTTP binding, 3.1.3.2)."""
    if _ALL_PLAIN.match(value):
        return value
    return quote_from_bytes(value.encode(), safe=_PLAIN)


def _received(event: CloudEvent, *, relayed: bool) -> CloudEvent:
    """Return the event; raise `EventError` for a content type without subtype, unless `relayed`."""
    if not relayed and not is_media_type(event.datacontenttype):
        raise EventError(_NO_MEDIA_TYPE.format(event.datacontenttype))
    return event


def _refuse_repeated(pairs: list[tuple[str, str]]) -> None:
    """Raise `EventError` for a repeated ce- header, since it is ambiguous."""
    names = [name for name, _ in pairs if name != "content-type"]
    for name in names:
        if names.count(name) > 1:
            raise EventError(f"the header ce-{name} is there more than once")


@lru_cache(maxsize=1024)
def _header_meaning(name: bytes) -> str | None:
    """Return the attribute in a header, or `content-type`, or `None`."""
    name = name.lower()
    if name.startswith(b"ce-"):
        return name[3:].decode("latin-1")
    return "content-type" if name == b"content-type" else None


def _decode_header(name: str, value: str) -> str:
    """Undo `encode_header`: quotes first, then one round of percent-decoding."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = re.sub(r"\\(.)", r"\1", value[1:-1])
    if "%" not in value and value.isascii():
        return value
    try:
        return unquote_to_bytes(value.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise EventError(f"the header ce-{name} is not UTF-8 after percent-decoding") from None


def _take_data(document: dict[str, object], text: bytes | None) -> bytes | None:
    """Return the data of a JSON-format event; `text` is its raw member `data`."""
    encoded = document.pop("data_base64", None)
    if document.get("specversion") == "0.3" and document.get(_ENCODING) == "base64" and text is not None:
        del document[_ENCODING]
        encoded, text = _parse(text), None
    if encoded is not None:
        if text is not None:
            raise EventError("an event has data or data_base64, not both")
        try:
            return base64.b64decode(str(encoded), validate=True)
        except ValueError:
            raise EventError("data_base64 is not Base64") from None
    content_type = document.get("datacontenttype")
    if text is not None and isinstance(content_type, str) and not is_json(content_type):
        data = _parse(text)
        return data.encode() if isinstance(data, str) else text
    return text


def _parse(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise EventError(f"the data of the structured event is not JSON: {error}") from None


def _parses(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _build(attributes: dict[str, Any], data: bytes | None, versions: Container[str]) -> CloudEvent:
    """Build an event from all its attributes; `attributes` is used up."""
    take = attributes.pop
    version = take("specversion", None)
    if version is None:
        raise EventError("not a CloudEvent: the attribute 'specversion' is missing")
    if version not in versions:
        raise EventError(f"specversion {version!r} is not supported; send 1.0")
    for name in _REQUIRED:
        if name not in attributes:
            raise EventError(f"the attribute {name!r} is missing")
    return CloudEvent(
        take("id"),
        take("source"),
        take("type"),
        data,
        take("datacontenttype", None),
        take("dataschema", None),
        take("subject", None),
        take("time", None),
        attributes,
        version,
    )


def _is_plain_ascii(event: CloudEvent) -> bool:
    """Return True for printable ASCII under good names; any other event needs `_check`."""
    extensions = event.extensions
    try:
        values = "".join(extensions.values())  # type: ignore[arg-type]  # other values take the longer path
        every = event.id + event.source + event.type + values
        for optional in (event.datacontenttype, event.subject):
            if optional is not None:
                every += optional  # not formatted: what is no text must not pass for one
    except TypeError:
        return False
    return (
        every.isascii()
        and every.isprintable()
        and bool(event.id and event.source and event.type)
        and event.datacontenttype != ""
        and event.dataschema is None
        and event.subject != ""
        and (
            not extensions
            or (_NAMES.match("\n".join(extensions)) is not None and RESERVED.isdisjoint(extensions))
        )
    )


def _check(event: CloudEvent) -> None:
    """Check each attribute; raise `EventError` naming the wrong one."""
    for name in (*_REQUIRED, "datacontenttype", "dataschema", "subject"):
        value = getattr(event, name)
        if value is not None or name in _REQUIRED:
            _check_text(name, value)
    for name, value in event.extensions.items():
        _check_extension(name, value)


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise EventError(f"the attribute {name!r} is not a string")
    if not value:
        raise EventError(f"the attribute {name!r} is empty")
    _check_characters(name, value)


def _check_characters(name: str, value: str) -> None:
    match = _FORBIDDEN.search(value)
    if match is not None:
        raise EventError(
            f"the attribute {name!r} holds the character U+{ord(match[0]):04X}, "
            "which CloudEvents does not allow; put such text in the data"
        )


def _check_extension(name: str, value: object) -> None:
    if not _NAME.match(name):
        raise EventError(f"the attribute name {name!r} has other characters than a-z and 0-9")
    if name in RESERVED:
        raise EventError(f"{name!r} is no name for an extension attribute")
    if isinstance(value, str):
        _check_characters(name, value)
    elif not isinstance(value, int):
        raise EventError(f"the extension attribute {name!r} is neither string, integer nor boolean")
    elif value not in _INT32:
        raise EventError(f"the extension attribute {name!r} is not a 32-bit integer")
