"""CloudEvents over HTTP: what holds for every event, and the `cloudevents` package as the oracle."""

import json

from cloudevents.core.bindings.http import HTTPMessage
from cloudevents.core.bindings.http import from_http as oracle_from_http
from cloudevents.core.bindings.http import to_binary as oracle_to_binary
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent as OracleEvent
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http, to_binary, to_structured
from beckon_contract.jsontext import NotJsonError, members

# The String type: no control characters, surrogates or noncharacters.
_NONCHARACTERS = [chr(plane << 16 | last) for plane in range(17) for last in (0xFFFE, 0xFFFF)]
_NONCHARACTERS += [chr(code) for code in range(0xFDD0, 0xFDF0)]
_CHARACTERS = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters=_NONCHARACTERS)
TEXT = st.text(_CHARACTERS, min_size=1, max_size=20)
NAMES = st.from_regex(r"[a-z0-9]{1,20}", fullmatch=True).filter(
    lambda name: (
        name
        not in (
            "id",
            "source",
            "type",
            "specversion",
            "data",
            "subject",
            "time",
            "dataschema",
            "datacontenttype",
        )
    )
)
TIMES = st.datetimes().map(lambda moment: moment.isoformat() + "Z")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def events(draw: st.DrawFn, values: st.SearchStrategy[str | int | bool] = TEXT) -> CloudEvent:
    kind = draw(st.sampled_from(["application/json", "text/plain", "application/octet-stream", None]))
    data = draw(
        st.none() | st.binary(min_size=1, max_size=40) | JSON.map(lambda value: json.dumps(value).encode())
    )
    return CloudEvent(
        draw(TEXT),
        draw(TEXT),
        draw(TEXT),
        data,
        kind if data is not None else None,
        draw(st.none() | TEXT),
        draw(st.none() | TEXT),
        draw(st.none() | TIMES),
        draw(st.dictionaries(NAMES, values, max_size=4)),
    )


@given(events())
def test_binary_mode_brings_back_the_very_event(event: CloudEvent) -> None:
    headers, body = to_binary(event)
    assert from_http([(name.encode(), value.encode("ascii")) for name, value in headers], body) == event


@given(events(TEXT | st.integers(-(2**31), 2**31 - 1) | st.booleans()))
def test_structured_mode_brings_back_the_very_event(event: CloudEvent) -> None:
    headers, body = to_structured(event)
    got = from_http([(name.encode(), value.encode()) for name, value in headers], body)
    if event.data is not None and event.datacontenttype is None:
        assert got.datacontenttype == "application/json"
        got = CloudEvent(
            got.id,
            got.source,
            got.type,
            got.data,
            None,
            got.dataschema,
            got.subject,
            got.time,
            got.extensions,
        )
    assert got == event


@given(events())
def test_no_header_can_hold_a_line_break(event: CloudEvent) -> None:
    for name, value in to_binary(event)[0]:
        assert (name + value).isascii()
        assert (name + value).isprintable()


@given(
    st.lists(st.tuples(st.binary(max_size=12).map(lambda name: b"ce-" + name), st.binary(max_size=12))),
    st.binary(),
)
def test_any_headers_give_an_event_or_an_event_error(headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    try:
        event = from_http([(b"ce-specversion", b"1.0"), *headers], body)
    except EventError:
        return
    to_binary(event)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_gives_an_event_or_an_event_error(body: bytes) -> None:
    try:
        from_http([(b"content-type", b"application/cloudevents+json")], body)
    except EventError:
        return
    raise AssertionError("nothing here is an event")


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=6), JSON, max_size=5),
    st.sampled_from([None, 2]),
)
def test_the_members_of_an_object_are_the_text_that_is_there(
    document: dict[str, object], indent: int | None
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode()
    got = members(text)
    assert {name: json.loads(value) for name, value in got.items()} == document
    assert all(value in text for value in got.values())


@given(st.binary(max_size=30) | st.text(alphabet='{}[]",:\\ 1ane.-', max_size=30).map(str.encode))
def test_members_of_anything_else_is_an_error_and_nothing_worse(body: bytes) -> None:
    try:
        got = members(body)
    except NotJsonError:
        return
    assert isinstance(json.loads(body), dict)
    assert got.keys() == json.loads(body).keys()


@given(TEXT, TEXT, TEXT, TEXT, st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3))
def test_the_oracle_reads_what_we_write_where_it_is_right(
    identity: str, source: str, kind: str, subject: str, data: dict[str, str]
) -> None:
    event = CloudEvent(identity, source, kind, json.dumps(data).encode(), "application/json", subject=subject)
    headers, body = to_binary(event)
    read = oracle_from_http(HTTPMessage(headers=dict(headers), body=body), JSONFormat())
    assert (read.get_id(), read.get_source(), read.get_type()) == (identity, source, kind)
    assert (read.get_subject(), read.get_data()) == (subject, data)


@given(TEXT, TEXT, TEXT, st.dictionaries(st.text(max_size=5), st.text(max_size=5), min_size=1, max_size=3))
def test_we_read_what_the_oracle_writes(identity: str, source: str, kind: str, data: dict[str, str]) -> None:
    attributes = {"specversion": "1.0", "id": identity, "source": source, "type": kind}
    written = oracle_to_binary(
        OracleEvent({**attributes, "datacontenttype": "application/json"}, data), JSONFormat()
    )
    headers = [(name.encode(), value.encode()) for name, value in written.headers.items()]
    event = from_http(headers, written.body)
    assert (event.id, event.source, event.type, event.json()) == (identity, source, kind, data)
