"""OpenAPI 3.0 and 3.1: what of each reaches the rule and the parameters."""

from pathlib import Path
from typing import Any

from beckon_cli.importing.openapi.importer import Imported
from tests.cli.importing.reading import found_in, openapi, request, written


def one(tmp_path: Path, operation: dict[str, Any], path: str = "/things", **more: Any) -> Imported:
    """Return the only tool of a description with one operation by POST."""
    found = found_in(written(tmp_path, openapi({path: {"post": {"summary": "Do.", **operation}}}, **more)))
    assert found.skipped == []
    return found.tools[0]


def query(name: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema, **more}


def test_styles_of_query_parameters_are_imported(tmp_path: Path) -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    tool = one(tmp_path, {
        "parameters": [
            query("usual", numbers),
            query("commas", numbers, explode=False),
            query("spaces", numbers, style="spaceDelimited"),
            query("pipes", numbers, style="pipeDelimited"),
            query("deep", point, style="deepObject"),
            query("flat", point, explode=False),
            {"name": "json", "in": "query", "content": {"application/json": {"schema": point}}},
        ]
    })  # fmt: skip
    values = {name: [1, 2] for name in ("usual", "commas", "spaces", "pipes")}
    points = {name: {"x": 3, "y": 4} for name in ("deep", "flat", "json")}

    url = request(tool, **values, **points).url

    assert url.partition("?")[2] == (
        "usual=1&usual=2&commas=1,2&spaces=1%202&pipes=1%7C2&deep%5Bx%5D=3&deep%5By%5D=4&flat=x,3,y,4"
        "&json=%7B%22x%22%3A3%2C%22y%22%3A4%7D"
    )


def test_an_example_beside_the_schema_of_a_parameter_is_imported(tmp_path: Path) -> None:
    text = {"type": "string"}
    several = {"first": {"value": "b"}, "second": {"value": "c"}}
    tool = one(tmp_path, {
        "parameters": [query("x", text, example="a"), query("y", text, examples=several), query("z", text)]
    })  # fmt: skip

    assert tool.parameters["properties"] == {
        "x": {"type": "string", "examples": ["a"]},
        "y": {"type": "string", "examples": ["b"]},
        "z": {"type": "string"},
    }


def test_an_exploded_object_in_the_query_becomes_arguments_of_its_own(tmp_path: Path) -> None:
    page = {
        "type": "object",
        "properties": {"limit": {"type": "integer"}, "page[cursor]": {"type": "string"}},
    }

    tool = one(tmp_path, {"parameters": [query("paging", page)]})

    assert tool.parameters["properties"].keys() == {"limit", "page_cursor"}
    assert request(tool, limit=2, page_cursor="c").url.endswith("?limit=2&page%5Bcursor%5D=c")


def test_names_that_meet_say_where_they_go(tmp_path: Path) -> None:
    body = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    tool = one(
        tmp_path,
        {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                query("id", {"type": "integer"}),
                {"name": "X-Id", "in": "header", "schema": {"type": "string"}},
                {"name": "id", "in": "cookie", "schema": {"type": "string"}},
            ],
            "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        },
        "/things/{id}",
    )

    found = request(tool, id=1, id_query=2, X_Id="h", id_cookie="c", id_body="b")

    assert tool.parameters["required"] == ["id", "id_body"]
    assert found.url.endswith("/things/1?id=2")
    assert {("x-id", "h"), ("cookie", "id=c")} <= set(found.headers)
    assert found.body == b'{"id":"b"}'


def test_what_can_have_one_value_only_is_no_argument(tmp_path: Path) -> None:
    body = {
        "type": "object",
        "properties": {"kind": {"enum": ["a {b}"]}, "to": {"type": "string"}},
        "required": ["kind", "to"],
    }
    tool = one(tmp_path, {
        "parameters": [query("v", {"type": "integer", "enum": [3]}, required=True)],
        "requestBody": {"content": {"application/json": {"schema": body}}},
    })  # fmt: skip

    found = request(tool, to="x")

    assert tool.parameters["properties"].keys() == {"to"}
    assert found.url.endswith("?v=3")
    assert found.body == b'{"kind":"a {b}","to":"x"}'


def test_a_parameter_that_the_user_sets_is_no_argument(tmp_path: Path) -> None:
    version = {"name": "Api-Version", "in": "header", "schema": {"type": "string"}}
    operation = {"summary": "Do.", "parameters": [version, query("n", {"type": "integer"}, required=True)]}
    description = openapi({"/a": {"get": operation}})

    (tool,) = found_in(written(tmp_path, description), fixed={"Api-Version": "2022-06-28", "n": "{3}"}).tools

    assert tool.parameters["properties"] == {}
    found = request(tool)
    assert (found.url, dict(found.headers)) == (
        "https://pets.example/v1/a?n=%7B3%7D",
        {"api-version": "2022-06-28"},
    )


def test_what_would_make_a_script_of_the_answer_is_left_out(tmp_path: Path) -> None:
    callback = query("callback", {"type": "string"}, description="callback")
    description = openapi({"/a": {"get": {"summary": "Do.", "parameters": [callback]}}})

    (tool,) = found_in(written(tmp_path, description)).tools

    assert tool.parameters["properties"] == {}


def test_a_list_or_a_choice_is_the_argument_body(tmp_path: Path) -> None:
    several = {"type": "array", "items": {"type": "integer"}}
    cat = {"type": "object", "properties": {"meow": {"type": "boolean"}}}
    dog = {"type": "object", "properties": {"bark": {"type": "boolean"}}}
    for schema in (several, {"oneOf": [cat, dog]}):
        content = {"application/json": {"schema": schema}}

        tool = one(tmp_path, {"requestBody": {"description": "All of it.", "content": content}})

        assert tool.parameters["properties"]["body"]["description"] == "All of it."
        assert request(tool, body=[1, 2]).body == b"[1,2]"


def test_all_of_is_flattened_and_any_of_that_only_requires_stays(tmp_path: Path) -> None:
    named = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    more = {
        "properties": {"e-mail": {"type": "string"}, "phone": {"type": "string"}},
        "anyOf": [{"required": ["e-mail"]}, {"required": ["phone"]}],
    }
    schema = {"allOf": [{"$ref": "#/components/schemas/Named"}, more]}

    tool = one(
        tmp_path,
        {"requestBody": {"content": {"application/json": {"schema": schema}}}},
        components={"schemas": {"Named": named}},
    )

    assert tool.parameters["properties"].keys() == {"name", "e_mail", "phone"}
    assert tool.parameters["required"] == ["name"]
    assert tool.parameters["anyOf"] == [{"required": ["e_mail"]}, {"required": ["phone"]}]
    assert request(tool, name="n", e_mail="e").body == b'{"name":"n","e-mail":"e"}'


def test_recursion_that_ends_stays(tmp_path: Path) -> None:
    node = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}},
        },
    }
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}

    tool = one(tmp_path, {"requestBody": body}, components={"schemas": {"Node": node}})

    assert tool.parameters["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert request(tool, children=[{"children": []}]).body == b'{"children":[{"children":[]}]}'


def test_a_deep_body_is_described_as_far_as_a_model_can_bear(tmp_path: Path) -> None:
    schemas: dict[str, Any] = {}
    for level in range(9):
        inner = {f"p{number}": {"$ref": f"#/components/schemas/L{level + 1}_{number}"} for number in range(6)}
        for number in range(6):
            words = {"type": "string", "description": "Words that say much of little. " * 12}
            schemas[f"L{level}_{number}"] = {"type": "object", "properties": {**inner, "text": words}}
    schemas |= {f"L9_{number}": {"type": "string"} for number in range(6)}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0_0"}}}}

    tool = one(tmp_path, {"requestBody": body}, components={"schemas": schemas})

    assert len(str(tool.parameters)) < 20 * 1024
    assert any("are not described" in note for note in tool.notes)


def test_the_spelling_of_31_and_of_30_mean_the_same(tmp_path: Path) -> None:
    new = {"type": ["string", "null"], "examples": ["a"], "exclusiveMinimum": 3}
    old = {"type": "string", "nullable": True, "example": "a", "minimum": 3, "exclusiveMinimum": True}
    found = [
        one(tmp_path, {"parameters": [query("q", schema)]}, openapi=version).parameters
        for schema, version in ((new, "3.1.0"), (old, "3.0.3"))
    ]

    assert found[0] == found[1]


def test_yaml_is_read_as_openapi_means_it(tmp_path: Path) -> None:
    text = """
openapi: 3.0.3
info: {title: Pets, version: 1}
servers: [{url: "https://pets.example"}]
paths:
  /a:
    get:
      summary: Do.
      parameters: [{name: country, in: query, schema: {type: string, enum: [NO, SE], default: no}}]
"""

    (tool,) = found_in(written(tmp_path, text)).tools

    assert tool.parameters["properties"]["country"] == {
        "type": "string",
        "enum": ["NO", "SE"],
        "default": "no",
    }


def test_text_xml_and_bytes_are_bodies_as_well(tmp_path: Path) -> None:
    for kind, given, sent in (
        ("text/plain", "hello", b"hello"),
        ("application/xml", "<a/>", b"<a/>"),
        ("image/png", {"media_type": "image/png", "data_base64": "AAEC"}, b"\x00\x01\x02"),
    ):
        tool = one(tmp_path, {"requestBody": {"required": True, "content": {kind: {}}}})

        assert request(tool, body=given).body == sent
