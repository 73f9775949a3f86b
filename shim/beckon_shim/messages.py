"""Events as they are on the wire: their headers and data, checked and otherwise as they came."""

import re
from dataclasses import dataclass

from beckon_contract.cloudevents.events import from_http, to_binary
from beckon_contract.cloudevents.extensions import is_media_type, is_timestamp
from beckon_runtime.posts import RawHeader

_NAMES = re.compile(rb"(?:ce-[a-z0-9]+\n)+\Z")
_PLAIN = re.compile(rb"[ !#$&-~]*\Z")
_UNUSUAL = frozenset((b"ce-data", b"ce-datacontenttype"))


@dataclass(slots=True)
class WireEvent:
    """A valid event in binary mode: its ce- headers by name, its content type, its data."""

    attributes: dict[bytes, bytes]
    content_type: bytes
    body: bytes

    def headers(self) -> list[RawHeader]:
        """Return the headers of the event, in the order they came."""
        headers = list(self.attributes.items())
        if self.content_type:
            headers.append((b"content-type", self.content_type))
        return headers

    def text(self, name: bytes) -> str:
        """Return the header value of an attribute, "" if it is missing."""
        return self.attributes.get(name, b"").decode("latin-1")


def read(headers: list[RawHeader], body: bytes) -> WireEvent:
    """Return the event in an HTTP message of either mode; header names are lower case.

    Raises `EventError` that says what is wrong.
    """
    attributes: dict[bytes, bytes] = {}
    content_type = b""
    count = 0
    for name, value in headers:
        if name[:3] == b"ce-":
            attributes[name] = value
            count += 1
        elif name == b"content-type":
            content_type = value
    if count == len(attributes) and _is_plain_binary(attributes, content_type):
        return WireEvent(attributes, content_type, body)
    return _read_any_mode(headers, body)


def _is_plain_binary(attributes: dict[bytes, bytes], content_type: bytes) -> bool:
    if content_type[:23].lower() == b"application/cloudevents":
        return False
    if not is_media_type(content_type.decode("latin-1") or None):
        return False
    if attributes.get(b"ce-specversion") != b"1.0":
        return False
    if not (attributes.get(b"ce-id") and attributes.get(b"ce-source") and attributes.get(b"ce-type")):
        return False
    values = attributes.values()
    if b"" in values or not _PLAIN.match(b"".join(values)) or not _UNUSUAL.isdisjoint(attributes):
        return False
    time = attributes.get(b"ce-time")
    if time is not None and not is_timestamp(time.decode("latin-1")):
        return False
    return _NAMES.match(b"\n".join(attributes) + b"\n") is not None


def _read_any_mode(headers: list[RawHeader], body: bytes) -> WireEvent:
    event = from_http(headers, body)
    pairs, data = to_binary(event)
    attributes = {name.encode("latin-1"): value.encode("latin-1") for name, value in pairs}
    content_type = attributes.pop(b"content-type", b"")
    return WireEvent(attributes, content_type, data)
