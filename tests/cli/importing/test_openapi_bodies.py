"""Request bodies of OpenAPI as arguments: names that are taken, constants, forms of a GET, odd encodings."""

from pathlib import Path
from typing import Any

import pytest

from beckon_cli.importing.openapi.importer import Imported
from tests.cli.importing.reading import found_in, openapi, request, tools_of, written


def _imported(folder: Path, body: dict[str, Any], method: str = "post", **more: Any) -> Imported:
    operation = {
        "operationId": "act",
        "summary": "Act.",
        "requestBody": body,
        "responses": {"200": {"description": "Done."}},
        **more,
    }
    return tools_of(found_in(written(folder, openapi({"/things": {method: operation}}))))["act"]


def _json(schema: Any, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    return {"required": True, "content": {kind: {"schema": schema, **more}}}


def test_a_name_that_is_taken_gets_its_place_and_then_a_number(tmp_path: Path) -> None:
    fields = {"id": {"type": "string"}, "name": {"type": "string"}}
    query = [
        {"name": name, "in": "query", "schema": {"type": "string"}} for name in ("id", "id_body", "name")
    ]
    tool = _imported(tmp_path, _json({"type": "object", "properties": fields}), parameters=query)
    sent = request(tool, id="q", id_body_2="b", name_body="n")

    assert set(tool.parameters["properties"]) == {"id", "id_body", "id_body_2", "name", "name_body"}
    assert sent.url.endswith("?id=q")
    assert sent.body == b'{"id":"b","name":"n"}'


def test_a_field_with_one_value_is_no_argument(tmp_path: Path) -> None:
    fields = {
        "kind": {"const": {"name": "{braces}", "tags": ["a", 1]}},
        "any": True,
        "never": False,
        "size": {"type": "integer"},
    }
    schema = {"type": "object", "required": ["kind", "size"], "properties": fields}
    tool = _imported(tmp_path, _json(schema))

    assert set(tool.parameters["properties"]) == {"any", "size"}
    assert request(tool, size=3).body == b'{"kind":{"name":"{braces}","tags":["a",1]},"size":3}'


def test_the_form_of_a_get_becomes_its_query(tmp_path: Path) -> None:
    fields = {"text": {"type": "string"}, "page": {"const": 1}}
    schema = {"type": "object", "required": ["text", "page"], "properties": fields}
    tool = _imported(tmp_path, _json(schema, "application/x-www-form-urlencoded"), "get")
    sent = request(tool, text="a b")

    assert "a GET has no body: its fields go into the query" in tool.notes
    assert sent.url.endswith("?page=1&text=a%20b")
    assert not sent.body


def test_a_body_of_a_get_that_is_no_form_is_left_out(tmp_path: Path) -> None:
    tool = _imported(tmp_path, _json({"type": "array", "items": {"type": "string"}}), "get")

    assert "the body is left out: a GET has none, and this one is no form" in tool.notes
    assert "body" not in tool.parameters["properties"]


def test_a_body_without_fields_is_an_empty_object(tmp_path: Path) -> None:
    tool = _imported(tmp_path, _json({"type": "object"}))

    assert request(tool).body == b"{}"


@pytest.mark.parametrize(
    ("encoding", "sent"),
    [
        ({}, b"tags=a&tags=b"),
        ({"tags": {"style": "form", "explode": False}}, b"tags=a,b"),
        ({"tags": {"style": "pipeDelimited"}}, b"tags=a%7Cb"),
        ({"tags": {"style": "pipeDelimited", "explode": True}}, b"tags=a&tags=b"),
        ({"tags": {"style": "unheard-of"}}, b"tags=a&tags=b"),
        ({"tags": "no mapping", "gone": {"style": "form"}}, b"tags=a&tags=b"),
    ],
)
def test_the_encoding_of_a_form_field_is_imported_if_it_is_known(
    tmp_path: Path, encoding: dict[str, Any], sent: bytes
) -> None:
    schema = {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}}
    tool = _imported(tmp_path, _json(schema, "application/x-www-form-urlencoded", encoding=encoding))

    assert request(tool, tags=["a", "b"]).body == sent


def test_a_field_that_is_an_object_is_written_member_by_member(tmp_path: Path) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"at": point}}
    encoding = {"at": {"style": "deepObject"}}
    tool = _imported(tmp_path, _json(schema, "application/x-www-form-urlencoded", encoding=encoding))

    assert request(tool, at={"x": 1, "y": 2}).body == b"at%5Bx%5D=1&at%5By%5D=2"


def test_fields_beside_the_named_ones_are_reported(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
        "additionalProperties": {"type": "string"},
    }
    tool = _imported(tmp_path, _json(schema))

    assert "fields of the body beside those that are named are left out" in tool.notes


def test_fields_of_which_one_is_required_stay_a_choice(tmp_path: Path) -> None:
    fields = {"mail": {"type": "string"}, "phone": {"type": "string"}}
    choice = [{"required": ["mail"]}, {"required": ["phone"]}]
    tool = _imported(tmp_path, _json({"type": "object", "properties": fields, "anyOf": choice}))

    assert tool.parameters["anyOf"] == choice


def test_a_choice_of_a_field_that_is_not_there_is_no_choice(tmp_path: Path) -> None:
    fields = {"mail": {"type": "string"}}
    choice = [{"required": ["mail"]}, {"required": ["fax"]}]
    tool = _imported(tmp_path, _json({"type": "object", "properties": fields, "anyOf": choice}))

    assert "anyOf" not in tool.parameters


def test_text_and_bytes_are_one_argument(tmp_path: Path) -> None:
    text = _imported(tmp_path, _json({"type": "string"}, "text/plain"))
    some = _imported(tmp_path, _json({"type": "string"}, "image/*"))

    assert request(text, body="hello").body == b"hello"
    assert text.parameters["properties"]["body"]["type"] == "string"
    assert some.parameters["properties"]["body"]["type"] == "object"
