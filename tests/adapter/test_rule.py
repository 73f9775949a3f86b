"""What the annotation `beckon.dev/http` may say, and the messages for all else."""

import pytest

from beckon_adapter.rule import HttpRule, InvalidRule, parse_rule

EVERYTHING = """\
method: PUT
url: https://api.example.com/v1/cities/{city}/weather?lang=en
query:
  units: "{units}"
  limit: 5
  ids: {value: "{ids}", style: form, explode: false}
headers: {X-Trace: "{trace}"}
cookies: {seen: "{seen}"}
body: {city: "{city}", note: "for {name}", days: ["{day}", 3, null, true]}
body_type: application/merge-patch+json
result: "items[].{id: id, name: name}"
timeout: 1m30s
retries: 0
credential: petstore
"""


def test_a_rule_reads_as_it_was_written() -> None:
    rule = parse_rule(EVERYTHING)

    assert (rule.method, rule.timeout, rule.retries, rule.credential) == ("PUT", 90.0, 0, "petstore")
    assert rule.arguments == {"city", "units", "ids", "trace", "seen", "name", "day"}


@pytest.mark.parametrize(
    ("text", "method"),
    [
        ("url: https://a.example/", "GET"),
        ("{url: 'https://a.example/', body: {}}", "POST"),
        ('{"url": "https://a.example/", "body": "{all}"}', "POST"),
        ("{url: 'https://a.example/', method: DELETE, body: {a: 1}}", "DELETE"),
    ],
)
def test_the_method_is_get_unless_there_is_a_body_or_it_is_named(text: str, method: str) -> None:
    assert parse_rule(text).method == method


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("just a text", "must be a mapping with at least url"),
        ("a: [", "not YAML"),
        ("method: GET", "url: missing"),
        ("{url: 'https://a.example/', uri: x}", "uri: unknown field; the fields here are method, url"),
        ("{url: 'https://a.example/', method: get}", "method: Input should be 'GET'"),
        ("url: ftp://a.example/", "must be a URL such as"),
        ("url: https://{host}/x", "the host is fixed"),
        ("url: https://a.{domain}/x", "the host is fixed"),
        ("url: https://a.example:{port}/x", "the host is fixed"),
        ("url: https://user:pass@a.example/x", "a URL holds no credentials"),
        ("url: 'https://a.example/x#part'", "no fragment"),
        ("url: https://bücher.example/", "in ASCII"),
        ("url: https://a.example:70000/", "70000 is no port"),
        ("url: https://a.example:0/", "0 is no port"),
        ("{url: 'https://a.example/', body: {a: 99999999999999999999999}}", "holds what JSON cannot say"),
        ("url: https://a.example/../admin", "without . and .."),
        ("url: https://a.example/%2e%2E/admin", "without . and .."),
        ("url: https://a.example/x?y={y}", "under query"),
        ("url: https://a.example/{x", "has a { on its own; double a literal brace: {{"),
        ("{url: 'https://a.example/', query: {a: '}'}}", "has a } on its own"),
        ("{url: 'https://a.example/', query: {a: [1]}}", "query.a: must be a text such as"),
        (
            "{url: 'https://a.example/', query: {a: {value: '{a}', styl: form}}}",
            "query.a.styl: unknown field",
        ),
        ("{url: 'https://a.example/', query: {a: {value: '{a}', style: matrix}}}", "query.a.style:"),
        ("{url: 'https://a.example/', headers: {Host: b.example}}", "belongs to the connection"),
        ("{url: 'https://a.example/', headers: {transfer-encoding: chunked}}", "belongs to the connection"),
        ("{url: 'https://a.example/', headers: {Authorization: 'Bearer {t}'}}", "write credential: NAME"),
        ("{url: 'https://a.example/', headers: {Content-Type: text/xml}}", "use body_type"),
        ("{url: 'https://a.example/', headers: {Cookie: a=b}}", "use cookies"),
        ("{url: 'https://a.example/', headers: {X-Forwarded-For: '{ip}'}}", "write a fixed value"),
        ("{url: 'https://a.example/', headers: {X-HTTP-Method-Override: '{m}'}}", "write a fixed value"),
        ('{"url": "https://a.example/", "headers": {"X-A": "b\\r\\nX-C: d"}}', "visible ASCII"),
        ("{url: 'https://a.example/', headers: {'X A': b}}", "no name of a header"),
        ("{url: 'https://a.example/', headers: {X-A: b, x-a: c}}", "named twice"),
        ("{url: 'https://a.example/', cookies: {'a;b': c}}", "no name of a cookie"),
        ("{url: 'https://a.example/', method: GET, body: {a: 1}}", "a GET carries no body"),
        (
            "{url: 'https://a.example/', body: text, body_type: application/x-www-form-urlencoded}",
            "must be a mapping of its fields",
        ),
        ("{url: 'https://a.example/', body: {a: 1}, body_type: text/plain}", "must be a text"),
        ("{url: 'https://a.example/', body: {a: 1}, encoding: {a: {style: json}}}", "encoding belongs to"),
        (
            "{url: 'https://a.example/', body: {a: 1}, body_type: multipart/form-data, encoding: {b: {}}}",
            "names 'b', which is no field of the body",
        ),
        ("{url: 'https://a.example/', result: 'items['}", "no JMESPath expression"),
        ("{url: 'https://a.example/', timeout: soon}", "is no duration"),
        ("{url: 'https://a.example/', retries: 99}", "less than or equal to 5"),
        ("{url: 'https://a.example/', credential: 'a b'}", "credential:"),
    ],
)
def test_what_is_wrong_with_a_rule_is_reported_with_its_place(text: str, said: str) -> None:
    with pytest.raises(InvalidRule) as caught:
        parse_rule(text)

    assert said in str(caught.value)
    assert all(
        problem.path.startswith("metadata.annotations[beckon.dev/http]") for problem in caught.value.problems
    )


def test_every_argument_that_does_not_exist_is_named_with_its_place_and_those_that_do() -> None:
    schema = {"type": "object", "properties": {"city": {}, "unit": {}}}
    text = "{url: 'https://a.example/{town}', query: {u: '{unit}'}, body: {deep: [{x: 'in {place}'}]}}"

    with pytest.raises(InvalidRule) as caught:
        parse_rule(text, schema)

    places = [problem.path.partition("]")[2] for problem in caught.value.problems]
    assert places == [".url", ".body.deep[0].x"]
    assert "names the argument 'town', which does not exist; the parameters are city, unit" in str(
        caught.value
    )


def test_doubled_braces_are_no_arguments() -> None:
    rule = HttpRule.model_validate({"url": "https://a.example/{{x}}", "body": {"q": "{{ {a} }}"}})

    assert rule.arguments == {"a"}
