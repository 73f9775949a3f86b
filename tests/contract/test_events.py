"""CloudEvents over HTTP, rule by rule; what the `cloudevents` package gets wrong has a test of ours each."""

import json

import pytest

from beckon_contract.cloudevents.events import (
    CloudEvent,
    EventError,
    EventFormatError,
    encode_header,
    from_http,
    from_structured,
    is_event,
    to_binary,
    to_structured,
)
from beckon_contract.cloudevents.extensions import is_json, is_timestamp

MINIMUM = [(b"ce-specversion", b"1.0"), (b"ce-id", b"1"), (b"ce-source", b"/s"), (b"ce-type", b"t")]
STRUCTURED = [(b"content-type", b"application/cloudevents+json")]


def binary(body: bytes = b"", **headers: str) -> CloudEvent:
    """Read a minimal binary event with these headers more; underscores stand for dashes."""
    more = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in headers.items()]
    return from_http([*MINIMUM, *more], body)


def structured(**members: object) -> CloudEvent:
    """Read a minimal structured event with these members more."""
    document = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t", **members}
    return from_http(STRUCTURED, json.dumps(document).encode())


def raw(event: CloudEvent) -> tuple[list[tuple[bytes, bytes]], bytes]:
    headers, body = to_binary(event)
    return [(name.encode(), value.encode("ascii")) for name, value in headers], body


# What the `cloudevents` package (2.2.0) gets wrong.


@pytest.mark.parametrize(
    "data", [b"[1, {'a': true}]".replace(b"'", b'"'), b'"text"', b"true", b"null", b"12"]
)
def test_json_data_of_any_kind_stays_what_it_is(data: bytes) -> None:
    event = binary(data, content_type="application/json")
    assert raw(event)[1] == data
    assert from_structured(to_structured(event)[1]).data == data


@pytest.mark.parametrize(
    "data", [b"1e400", b"123456789012345678901234567890", b"1.10", b'{"a":1, "a":2}', b'"\\u00e9"']
)
def test_structured_data_keeps_the_text_it_came_as(data: bytes) -> None:
    document = b'{"specversion":"1.0","id":"1","source":"/s","type":"t","data": ' + data + b" }"
    assert from_http(STRUCTURED, document).data == data


def test_a_boolean_is_written_lower_case() -> None:
    event = structured(flag=True, off=False, number=-5)
    assert dict(event.extensions) == {"flag": True, "off": False, "number": -5}
    headers = dict(to_binary(event)[0])
    assert (headers["ce-flag"], headers["ce-off"], headers["ce-number"]) == ("true", "false", "-5")
    assert json.loads(to_structured(event)[1])["flag"] is True


def test_a_quoted_header_is_unquoted_before_percent_decoding() -> None:
    assert binary(ce_subject=r'"a \"b\" %25 \\"').subject == 'a "b" % \\'
    assert binary(ce_subject='"').subject == '"'


@pytest.mark.parametrize("value", ["%C0%A0", "%FF", "%ED%A0%80", "\xff"])
def test_what_is_not_utf_8_is_refused(value: str) -> None:
    with pytest.raises(EventError, match="UTF-8"):
        binary(ce_subject=value)


@pytest.mark.parametrize("name", ["id", "source", "type", "subject", "datacontenttype", "dataschema", "time"])
@pytest.mark.parametrize("value", [0, 7, False, [], ["a"], {}, {"a": 1}])
def test_what_is_no_text_is_refused_where_an_attribute_is_text(name: str, value: object) -> None:
    with pytest.raises(EventError, match=name):
        structured(**{name: value})


def test_percent_decoding_is_done_once_and_raw_utf_8_understood() -> None:
    assert binary(ce_subject="%2541").subject == "%41"
    assert binary(ce_subject="Euro%20%E2%82%AC%20%F0%9F%98%80").subject == "Euro € 😀"
    assert from_http([*MINIMUM, (b"ce-subject", "grüß".encode())], b"").subject == "grüß"
    assert binary(ce_subject="100%").subject == "100%"


def test_values_are_percent_encoded_as_the_binding_says() -> None:
    assert encode_header("Euro € 😀") == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert encode_header('a"b%c') == "a%22b%25c"
    assert encode_header("/a?b=c&d=~!") == "/a?b=c&d=~!"


def test_a_structured_event_may_carry_ce_headers_which_do_not_count() -> None:
    document = json.dumps({"specversion": "1.0", "id": "in", "source": "/s", "type": "t"}).encode()
    event = from_http([*MINIMUM, *STRUCTURED, (b"ce-id", b"%FF"), (b"ce-Bad-Name", b"x")], document)
    assert event.id == "in"


def test_a_batch_is_refused_as_such() -> None:
    headers = [(b"Content-Type", b"application/cloudevents-batch+json")]
    assert is_event(headers)
    with pytest.raises(EventFormatError, match="one by one"):
        from_http(headers, b"[]")


def test_another_event_format_is_refused_as_such() -> None:
    with pytest.raises(EventFormatError, match="cloudevents\\+json"):
        from_http([(b"content-type", b"application/cloudevents+protobuf")], b"")


def test_nanoseconds_stay_and_time_is_not_invented() -> None:
    assert binary(ce_time="2026-01-31T09:30:00.123456789Z").time == "2026-01-31T09:30:00.123456789Z"
    assert (
        structured(time="2026-01-31T09:30:00.123456789+02:00").time == "2026-01-31T09:30:00.123456789+02:00"
    )
    assert binary().time is None
    assert "ce-time" not in dict(to_binary(binary())[0])


def test_what_goes_in_is_not_changed() -> None:
    extensions: dict[str, str | int | bool] = {"a": "1"}
    event = CloudEvent("1", "/s", "t", extensions=extensions)
    event.extended(b="2").without("a")
    to_binary(event)
    to_structured(event)
    assert extensions == {"a": "1"}
    assert event.extensions == {"a": "1"}


@pytest.mark.parametrize(
    "content_type", ["Application/JSON", "application/json; Charset=UTF-8", "text/JSON", "a/b+Json"]
)
def test_json_is_recognised_in_any_case(content_type: str) -> None:
    assert is_json(content_type)
    event = binary(b'{"a":1}', content_type=content_type)
    assert json.loads(to_structured(event)[1])["data"] == {"a": 1}
    assert event.datacontenttype == content_type


def test_structured_json_without_a_content_type_is_json() -> None:
    event = structured(data={"a": 1})
    assert event.datacontenttype == "application/json"
    assert dict(to_binary(event)[0])["content-type"] == "application/json"
    assert structured().datacontenttype is None


def test_invalid_base64_and_two_kinds_of_data_are_refused() -> None:
    assert structured(data_base64="aGk=", datacontenttype="text/plain").data == b"hi"
    for bad in ("aGk", "a*k=", 5):
        with pytest.raises(EventError, match="Base64"):
            structured(data_base64=bad)
    with pytest.raises(EventError, match="not both"):
        structured(data_base64="aGk=", data=1)


def test_malformed_json_data_is_relayed_unchanged_and_shown_to_who_reads_it() -> None:
    event = binary(b"{oops", content_type="application/json")
    assert from_structured(to_structured(event)[1]).data == b"{oops"
    with pytest.raises(EventError, match="not JSON"):
        event.json()


def test_text_in_a_structured_event_is_the_text_itself() -> None:
    assert structured(data="hi € \n", datacontenttype="text/plain").data == "hi € \n".encode()
    assert structured(data="<a/>", datacontenttype="application/xml").data == b"<a/>"
    assert structured(data={"a": 1}, datacontenttype="text/plain").data == b'{"a": 1}'


# What an event must be.


@pytest.mark.parametrize(
    ("headers", "word"),
    [
        ({"ce_specversion": "0.3"}, "more than once"),
        ({"ce_id": "2"}, "more than once"),
        ({"ce_a_b": "x"}, "a-b"),
        ({"ce_": "x"}, "a-z"),
        ({"ce_data": "x"}, "'data'"),
        ({"ce_time": "2026-02-30T00:00:00Z"}, "time"),
        ({"ce_time": "2026-01-31"}, "time"),
        ({"ce_subject": ""}, "'subject' is empty"),
        ({"ce_dataschema": ""}, "'dataschema' is empty"),
        ({"ce_subject": "a%0D%0Ab"}, "U\\+000D"),
        ({"ce_ext": "%00"}, "U\\+0000"),
        ({"ce_ext": "%EF%B7%90"}, "U\\+FDD0"),
        ({"ce_ext": "%F0%9F%BF%BE"}, "U\\+1FFFE"),
        ({"ce_ext": "%C2%85"}, "U\\+0085"),
    ],
)
def test_a_bad_attribute_is_refused_by_name(headers: dict[str, str], word: str) -> None:
    with pytest.raises(EventError, match=word):
        binary(b"", **headers)


@pytest.mark.parametrize("missing", ["specversion", "id", "source", "type"])
def test_a_required_attribute_is_required_and_not_empty(missing: str) -> None:
    header = f"ce-{missing}".encode()
    rest = [(name, value) for name, value in MINIMUM if name != header]
    with pytest.raises(EventError, match=missing):
        from_http(rest, b"")
    with pytest.raises(EventError, match=missing):
        from_http([*rest, (header, b"")], b"")


@pytest.mark.parametrize(
    ("members", "word"),
    [
        ({"id": 1}, "'id' is not a string"),
        ({"time": 5}, "time"),
        ({"specversion": 1.0}, "1.0"),
        ({"big": 2**31}, "32-bit"),
        ({"small": -(2**31) - 1}, "32-bit"),
        ({"huge": 10**30}, "neither"),
        ({"real": 1.5}, "neither"),
        ({"list": []}, "neither"),
        ({"Upper": "x"}, "Upper"),
        ({"a_b": "x"}, "a_b"),
        ({"line": "a\nb"}, "U\\+000A"),
        ({"half": "\ud800"}, "JSON object"),
    ],
)
def test_a_bad_member_is_refused_by_name(members: dict[str, object], word: str) -> None:
    with pytest.raises(EventError, match=word):
        structured(**members)


def test_the_edges_of_the_integers_are_allowed_and_null_is_absent() -> None:
    event = structured(big=2**31 - 1, small=-(2**31), nothing=None, subject=None)
    assert event.extensions == {"big": 2**31 - 1, "small": -(2**31)}
    assert event.subject is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"specversion":"1.0",}',
        b'{"specversion":"1.0"} x',
        b"\xff",
        b'{"a":NaN}',
        b'{"id":"1","id":"2"}',
        b'{1:"a"}',
        b'{"a" "b"}',
        b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=range(11),
)
def test_what_is_not_a_json_object_is_an_event_error(body: bytes) -> None:
    with pytest.raises(EventError):
        from_http(STRUCTURED, body)


def test_the_content_type_counts_and_not_a_header_of_its_name() -> None:
    assert (
        binary(b"x", ce_datacontenttype="text/plain", content_type="text/css").datacontenttype == "text/css"
    )
    assert binary(b"x", ce_datacontenttype="text/plain").datacontenttype is None


def test_header_names_are_read_in_any_case() -> None:
    headers = [(name.upper(), value) for name, value in MINIMUM]
    assert is_event(headers)
    assert from_http([*headers, (b"CE-MyExt", b"1")], b"").extensions == {"myext": "1"}


def test_what_has_neither_sign_is_no_event() -> None:
    assert not is_event([(b"content-type", b"application/json"), (b"ce-id", b"1")])
    with pytest.raises(EventError, match="not a CloudEvent"):
        from_http([(b"content-type", b"application/json")], b"{}")


@pytest.mark.parametrize(
    "attributes",
    [
        {"datacontenttype": "text/plain\r\nx-evil: 1"},
        {"datacontenttype": "text/ümlaut"},
        {"datacontenttype": ""},
        {"subject": "a\r\nb"},
        {"time": "now\r\n"},
        {"extensions": {"a: b\r\nc": "d"}},
        {"extensions": {"id": "x"}},
        {"extensions": {"": "x"}},
        {"extensions": {"a": "\x7f"}},
        {"extensions": {"a": 2**40}},
        {"extensions": {"a": None}},
        {"id": 5},
    ],
)
def test_an_event_that_could_not_be_sent_cannot_be_made(attributes: dict[str, object]) -> None:
    with pytest.raises(EventError):
        CloudEvent(**{"id": "1", "source": "/s", "type": "t", **attributes})  # type: ignore[arg-type]  # wrong types are the test


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("2026-01-31T09:30:00Z", True),
        ("2024-02-29t23:59:60.5z", True),
        ("2026-01-31T09:30:00.123456789-23:59", True),
        ("2026-02-29T00:00:00Z", False),
        ("2026-01-31 09:30:00Z", False),
        ("2026-01-31T24:00:00Z", False),
        ("2026-01-31T09:30:00", False),
        ("2026-01-31T09:30:00+2:00", False),
        ("２026-01-31T09:30:00Z", False),
        ("2026-01-31T09:30:00Z\n", False),
    ],
)
def test_timestamps_are_those_of_rfc_3339(text: str, valid: bool) -> None:
    assert is_timestamp(text) is valid


NO_MEDIA_TYPES = ["xyz/", "/json", "a b", "text/plain; charset", "text/plain,text/css", "text//plain", "é/x"]
MEDIA_TYPES = ["text/plain;charset=utf-8", 'a/b; c="d; \\"é"', "application/vnd.a.b+json ;x=y", "text/plain;"]


@pytest.mark.parametrize("content_type", ["xyz", *NO_MEDIA_TYPES])
def test_a_data_content_type_that_is_no_media_type_is_refused(content_type: str) -> None:
    with pytest.raises(EventError, match="'datacontenttype' is no"):
        binary(b"x", content_type=content_type)
    with pytest.raises(EventError, match="'datacontenttype' is no"):
        structured(data="x", datacontenttype=content_type)


def test_a_media_type_that_no_header_can_hold_is_refused() -> None:
    with pytest.raises(EventError, match="no media type"):
        structured(data="x", datacontenttype='text/plain; title="日"')


@pytest.mark.parametrize("content_type", MEDIA_TYPES)
def test_a_media_type_may_have_parameters(content_type: str) -> None:
    assert binary(b"x", content_type=content_type).datacontenttype == content_type


def test_an_event_to_relay_needs_no_subtype_as_knatives_ingress_takes_it() -> None:
    headers = [*MINIMUM, (b"content-type", b"xyz")]
    assert from_http(headers, b"x", relayed=True).datacontenttype == "xyz"
    with pytest.raises(EventError, match="no media type: 'xyz/'"):
        from_http([*MINIMUM, (b"content-type", b"xyz/")], b"x", relayed=True)
