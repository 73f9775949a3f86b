"""The request that a call becomes; whatever the arguments, it stays the request of the rule."""

import base64
import json
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_adapter.request import MAX_URL, build_request
from beckon_adapter.rule import HttpRule
from beckon_adapter.templates import UnfitArgument

HOST = "https://api.example.com"


def rule(**fields: object) -> HttpRule:
    return HttpRule.model_validate({"url": HOST + "/", **fields})


@pytest.mark.parametrize(
    ("url", "arguments", "made"),
    [
        ("/cities/{city}/weather", {"city": "San José"}, "/cities/San%20Jos%C3%A9/weather"),
        ("/a/{x}", {"x": "b/c?d#e&f=g"}, "/a/b%2Fc%3Fd%23e%26f%3Dg"),
        ("/a/{x}.json", {"x": 5}, "/a/5.json"),
        ("/a/{x}", {"x": 5.0}, "/a/5"),
        ("/a/{x}", {"x": True}, "/a/true"),
        ("/a/{x}", {"x": ["b", 2]}, "/a/b%2C2"),
        ("/a/{x}-{y}", {"x": 1, "y": "%41"}, "/a/1-%2541"),
        ("/a/{{x}}/b c/ü/%2F", {}, None),
        ("/a/%2Fb/{{x}}/ü", {}, "/a/%2Fb/%7Bx%7D/%C3%BC"),
        ("/a?fixed=1", {}, "/a?fixed=1"),
        ("", {}, "/"),
    ],
)
def test_arguments_stand_in_the_path_percent_encoded(
    url: str, arguments: dict[str, object], made: str | None
) -> None:
    if made is None:
        with pytest.raises(ValueError, match="must be a URL"):
            rule(url=HOST + url)
    else:
        assert build_request(rule(url=HOST + url), arguments).url == HOST + made


@pytest.mark.parametrize(
    "value",
    [
        "", ".", "..", "../admin", "a/../b", "a/..", "/", "a/", "/a", "a//b", "..\\admin", "a\\..\\b",
        "%2e%2e", "%252e%252e%252fadmin", "%2525252e%2525252e", "a%2f..%2fb", "..;/admin", "..;x=1",
        "．．", "‥", "．．／admin",
        "a\x00", "a\r\nb", "\x7f", " ", ". ", ".. /x",
    ],
)  # fmt: skip
def test_what_a_server_could_take_for_another_path_is_refused(value: str) -> None:
    with pytest.raises(UnfitArgument, match="'x' is part of the address"):
        build_request(rule(url=HOST + "/v1/items/{x}"), {"x": value})


def test_two_arguments_cannot_be_joined_to_dots() -> None:
    with pytest.raises(UnfitArgument, match="'x' and 'y' is part of the address"):
        build_request(rule(url=HOST + "/v1/{x}{y}/z"), {"x": ".", "y": "."})


def test_an_absent_argument_of_the_path_is_requested_by_name() -> None:
    with pytest.raises(UnfitArgument, match="the argument 'city' is needed"):
        build_request(rule(url=HOST + "/{country}/{city}"), {"country": "de", "city": None})


@pytest.mark.parametrize(
    ("parameter", "value", "query"),
    [
        ("{x}", "a b&c=d", "p=a%20b%26c%3Dd"),
        ("{x}", None, ""),
        ("{x}", False, "p=false"),
        ("{x}", [1, "b", None], "p=1&p=b"),
        ("{x}", [], ""),
        ("{x}", {"a": 1, "b": [2, 3]}, "a=1&b=2%2C3"),
        ("in {x}", "Rome", "p=in%20Rome"),
        ("in {x}", None, ""),
        (7, None, "p=7"),
        (True, None, "p=true"),
        ({"value": "{x}", "explode": False}, ["a,b", "c"], "p=a%2Cb,c"),
        ({"value": "{x}", "explode": False}, [], ""),
        ({"value": "{x}", "explode": False}, {"r": 1, "g": 2}, "p=r,1,g,2"),
        ({"value": "{x}", "style": "spaceDelimited"}, [1, 2], "p=1%202"),
        ({"value": "{x}", "style": "pipeDelimited"}, [1, 2], "p=1%7C2"),
        ({"value": "{x}", "style": "pipeDelimited", "explode": True}, [1, 2], "p=1&p=2"),
        ({"value": "{x}", "style": "deepObject"}, {"a": {"b": 1}, "c": [2]},
         "p%5Ba%5D%5Bb%5D=1&p%5Bc%5D%5B0%5D=2"),
        ({"value": "{x}", "style": "json"}, {"a": [1]}, "p=%7B%22a%22%3A%5B1%5D%7D"),
        ({"value": "{x}", "style": "json"}, None, ""),
    ],
)  # fmt: skip
def test_a_parameter_of_the_query_is_written_in_its_style(
    parameter: object, value: object, query: str
) -> None:
    request = build_request(rule(query={"p": parameter}), {"x": value})

    assert request.url == HOST + "/" + ("?" + query if query else "")


def test_a_fixed_query_comes_before_the_rest() -> None:
    request = build_request(rule(url=HOST + "/?a=1", query={"b": "{b}"}), {"b": 2})

    assert request.url == HOST + "/?a=1&b=2"


def test_the_fields_of_an_object_replace_no_other_parameter() -> None:
    with pytest.raises(UnfitArgument, match="the field 'account' of 'filter' would replace"):
        build_request(rule(query={"account": "mine", "filter": "{f}"}), {"f": {"account": "yours"}})


def test_headers_and_cookies_hold_arguments_and_are_left_out_without_them() -> None:
    made = rule(
        headers={"X-Trace": "{trace}", "X-None": "for {absent}", "X-Limit": 5},
        cookies={"a": "{a}", "b": "x", "c": "{absent}"},
    )

    request = build_request(made, {"trace": "t-1", "a": "1; admin=1"})

    assert request.headers == (("x-trace", "t-1"), ("x-limit", "5"), ("cookie", "a=1%3B%20admin=1; b=x"))


@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "a\x00b", "ü", "a\x7f"])
def test_no_argument_adds_a_header(value: str) -> None:
    with pytest.raises(UnfitArgument, match="'trace' goes into a header"):
        build_request(rule(headers={"X-Trace": "{trace}"}), {"trace": value})


def test_a_json_body_keeps_the_types_of_its_arguments() -> None:
    body = {
        "city": "{city}",
        "days": "{days}",
        "note": "for {name}, {days} days",
        "gone": "{gone}",
        "gone too": "for {gone}",
        "null": "{null}",
        "list": ["{days}", "{gone}", 3, None],
        "fixed": {"braces": "{{x}}", "deep": {"all": "{all}"}},
    }
    arguments = {"city": "Ü", "days": 3, "name": "Ann", "null": None, "all": {"a": [1.5, False]}}

    request = build_request(rule(body=body), arguments)

    assert request.method == "POST"
    assert request.headers == (("content-type", "application/json"),)
    assert json.loads(request.body) == {
        "city": "Ü",
        "days": 3,
        "note": "for Ann, 3 days",
        "null": None,
        "list": [3, 3, None],
        "fixed": {"braces": "{x}", "deep": {"all": {"a": [1.5, False]}}},
    }


def test_the_body_may_be_one_argument_and_is_none_without_it() -> None:
    made = rule(body="{items}", body_type="application/merge-patch+json", method="PATCH")

    assert build_request(made, {"items": [1, {"a": 2}]}).body == b'[1,{"a":2}]'
    assert build_request(made, {}).body == b""
    assert build_request(made, {}).headers == ()


def test_a_form_is_written_in_the_styles_of_its_fields() -> None:
    made = rule(
        body={"name": "{name}", "tags": "{tags}", "card": "{card}", "gone": "{gone}", "n": 1},
        body_type="application/x-www-form-urlencoded",
        encoding={"card": {"style": "deepObject"}, "tags": {"explode": False}},
    )

    request = build_request(made, {"name": "A&B=C", "tags": ["x", "y"], "card": {"exp": {"year": 30}}})

    assert request.headers == (("content-type", "application/x-www-form-urlencoded"),)
    assert request.body == b"name=A%26B%3DC&tags=x,y&card%5Bexp%5D%5Byear%5D=30&n=1"


def test_a_multipart_body_has_fields_and_files() -> None:
    file = {"media_type": "image/png", "data_base64": base64.b64encode(b"\x89PNG").decode()}
    made = rule(body={"title": "{title}", "file": "{file}"}, body_type="multipart/form-data")

    request = build_request(made, {"title": 'a"\r\nb', "file": file})

    (name, kind), *_ = request.headers
    assert name == "content-type"
    assert kind.startswith("multipart/form-data; boundary=")
    assert b'name="title"\r\n\r\na"\r\nb\r\n' in request.body
    assert b'name="file"; filename="file"\r\nContent-Type: image/png\r\n\r\n\x89PNG\r\n' in request.body


def test_a_multipart_body_of_absent_arguments_is_none() -> None:
    request = build_request(rule(body={"file": "{file}"}, body_type="multipart/form-data"), {})

    assert (request.body, request.headers) == (b"", ())


def test_other_bodies_are_texts_or_the_bytes_of_a_file() -> None:
    text = build_request(rule(body="<a>{x}</a>", body_type="application/xml"), {"x": "ü"})
    file = {"media_type": "audio/wav", "data_base64": base64.b64encode(b"RIFF").decode()}
    sound = build_request(rule(body="{file}", body_type="application/octet-stream"), {"file": file})

    assert text.headers == (("content-type", "application/xml; charset=utf-8"),)
    assert text.body == "<a>ü</a>".encode()
    assert sound.headers == (("content-type", "audio/wav"),)
    assert sound.body == b"RIFF"


@pytest.mark.parametrize(
    "file",
    [
        {"media_type": "audio/wav", "data_base64": "no base64!"},
        {"media_type": "a\r\nX-Admin: 1", "data_base64": ""},
        {"media_type": 5, "data_base64": ""},
    ],
)
def test_a_file_that_is_none_is_refused(file: dict[str, object]) -> None:
    with pytest.raises(UnfitArgument):
        build_request(rule(body="{file}", body_type="application/octet-stream"), {"file": file})


def test_an_address_has_a_greatest_length() -> None:
    with pytest.raises(UnfitArgument, match="characters"):
        build_request(rule(query={"q": "{q}"}), {"q": "a" * MAX_URL})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
nasty = st.text(st.sampled_from("./\\%25efEF;?#&=@:\r\n\x00 ．／‥a[]{}"), max_size=12)


@given(x=nasty | json_values, y=nasty | json_values)
def test_no_argument_changes_host_path_or_the_number_of_parts(x: object, y: object) -> None:
    made = rule(
        url=HOST + "/v1/items/{x}/parts",
        query={"fixed": "1", "y": "{y}", "text": "<{y}>"},
        headers={"X-Y": "{y}"},
        cookies={"y": "{y}"},
    )

    try:
        request = build_request(made, {"x": x, "y": y})
    except UnfitArgument:
        return

    parsed = urlsplit(request.url)
    assert (parsed.scheme, parsed.netloc, parsed.fragment) == ("https", "api.example.com", "")
    segments = parsed.path.split("/")
    assert [segments[index] for index in (0, 1, 2, 4)] == ["", "v1", "items", "parts"]
    assert len(segments) == 5
    assert unquote(segments[3]) not in ("", ".", "..")
    assert request.url.isascii()
    assert request.url.isprintable()
    assert " " not in request.url
    assert [value for name, value in parse_qsl(parsed.query) if name == "fixed"] == ["1"]
    assert len(request.headers) <= 2
    for _, value in request.headers:
        assert value.isascii()
        assert not set(value) & set("\r\n\x00")
    for name, value in request.headers:
        assert name != "cookie" or ";" not in value
