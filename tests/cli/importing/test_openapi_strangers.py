"""Descriptions that no one can trust: broken ones, hostile ones, and large ones."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_cli.importing import manifests
from beckon_cli.importing.documents import BadDescription
from beckon_cli.importing.manifests import Placement
from beckon_contract.catalogue.check import check
from beckon_contract.kubernetes_objects import parse_manifests
from tests.cli.importing.reading import found_in, openapi, written
from tests.cli.importing.test_openapi_swagger import SWAGGER

JUNK: tuple[Any, ...] = (
    None,
    True,
    0,
    -1.5,
    "",
    "x",
    "{",
    "#/",
    [],
    [[]],
    {},
    {"$ref": "#/nowhere"},
    {"$ref": 5},
    {"type": {}},
    "\x85a: b",
)
PICK = {"enum": [1, 2]}
SHOP = openapi(
    {
        "/things/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "post": {
                "operationId": "change",
                "summary": "Change.",
                "tags": ["t"],
                "servers": [{"url": "https://{where}.example", "variables": {"where": {"default": "a"}}}],
                "security": [{"key": []}],
                "parameters": [{"name": "q", "in": "query", "schema": {"type": "array", "items": PICK}}],
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"$ref": "#/components/schemas/Thing"},
                            "encoding": {"parts": {"style": "form", "explode": False}},
                        }
                    }
                },
                "responses": {"200": {"description": "Good.", "content": {"application/json": {}}}},
            },
        }
    },
    components={
        "securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "k"}},
        "schemas": {
            "Thing": {
                "type": "object",
                "required": ["parts"],
                "properties": {
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
                    "part": {"allOf": [{"$ref": "#/components/schemas/Part"}], "nullable": True},
                    "when": {"type": "string", "format": "date-time", "pattern": "^2"},
                },
            },
            "Part": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"n": PICK}}]},
        },
    },
)  # fmt: skip


def places(node: Any) -> list[tuple[Any, Any]]:
    """Return every place of a document that can be replaced."""
    found: list[tuple[Any, Any]] = []
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        found.append((node, key))
        found += places(value)
    return found


@pytest.mark.parametrize("whole", [SHOP, yaml.safe_load(SWAGGER)], ids=["openapi", "swagger"])
@given(seed=st.integers(0, 2**32), junk=st.lists(st.sampled_from(JUNK), min_size=1, max_size=3))
@settings(max_examples=60)
def test_whatever_is_broken_is_reported_and_what_is_written_is_sound(
    tmp_path_factory: pytest.TempPathFactory, whole: dict[str, Any], seed: int, junk: list[Any]
) -> None:
    broken = json.loads(json.dumps(whole))
    chance = random.Random(seed)
    for value in junk:
        holder, key = chance.choice(places(broken))
        holder[key] = copy.deepcopy(value)

    try:
        found = found_in(written(tmp_path_factory.mktemp("broken"), json.dumps(broken)))
    except BadDescription:
        return

    assert all(skipped.reason for skipped in found.skipped)
    text = "".join(file.text for file in manifests.manifest_files(found, Placement()))
    assert check(parse_manifests(text, "written")).errors == 0


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(BadDescription) as refused:
        found_in(path, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no description of an API but nothing"),
        ("- a", "is no description of an API but a list"),
        ("hello", "is no description of an API but plain text"),
        ("a: [1,", "line 2: did not find"),
        ("openapi: 4.0.0\npaths: {}", "says '4.0.0'"),
        ("info: {}", "says neither swagger: '2.0' nor openapi: 3.x"),
        ("openapi: 3.1.0\nwebhooks: {}", "has no paths"),
        ("x: &a [1]\ny: [" + "*a, " * 20_000 + "]", "aliases stand for more than"),
        ("[" * 5_000, "nested deeper"),
    ],
)
def test_a_file_that_is_no_description_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(written(tmp_path, text))


def with_reference(reference: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"a": {"$ref": reference}}}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return openapi({"/a": {"post": {"summary": "Do.", "requestBody": body}}})


def test_references_into_files_beside_are_followed(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    written(tmp_path / "parts", {"Colour": {"$ref": "more.yaml#/Named"}}, "colours.yaml")
    written(tmp_path / "parts", {"Named": {"enum": ["red", "blue"]}}, "more.yaml")

    (tool,) = found_in(written(tmp_path, with_reference("parts/colours.yaml#/Colour"))).tools

    assert tool.parameters["properties"]["a"] == {"enum": ["red", "blue"]}


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("../secret.yaml#/a", "outside of"),
        ("/etc/passwd", "outside of"),
        ("link.yaml#/a", "outside of"),
        ("file:///etc/hostname", "outside of"),
        ("https://example.com/a.yaml#/a", "a file may refer to files only"),
        ("missing.yaml#/a", "cannot read"),
        ("#/components/schemas/Missing", "nothing is at the reference"),
    ],
)
def test_references_out_of_reach_skip_their_operation(tmp_path: Path, reference: str, said: str) -> None:
    written(tmp_path, {"a": {"type": "string"}}, "secret.yaml")
    folder = tmp_path / "api"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "secret.yaml")

    (skipped,) = found_in(written(folder, with_reference(reference))).skipped

    assert said in skipped.reason


def test_a_reference_that_leads_round_in_circles_is_reported(tmp_path: Path) -> None:
    loop = {"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}}}
    description = {**with_reference("#/components/schemas/A"), "components": loop}

    (skipped,) = found_in(written(tmp_path, description)).skipped

    assert "round in circles" in skipped.reason


def test_a_schema_that_nothing_can_satisfy_skips_its_operation(tmp_path: Path) -> None:
    endless = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/components/schemas/A"}}}
    description = {**with_reference("#/components/schemas/A"), "components": {"schemas": {"A": endless}}}

    (skipped,) = found_in(written(tmp_path, description)).skipped

    assert "requires another inside it" in skipped.reason


def test_text_of_strangers_is_made_short_and_plain_and_cannot_leave_its_comment(tmp_path: Path) -> None:
    operation = {
        "summary": "Do <b>this</b> [now](https://evil.example)\u202e\u200b",
        "description": "![x](http://a/b.png) `code` " + "Very much. " * 500,
        "parameters": [{"name": "a\u2028b: c", "in": "header", "schema": {"type": "string"}}],
    }
    description = openapi({"/a\u2028kind:Secret": {"get": operation}})
    description["info"]["title"] = "T\x85kind: Evil"

    found = found_in(written(tmp_path, json.dumps(description)))
    text = "".join(file.text for file in manifests.manifest_files(found, Placement()))

    assert [tool.description.startswith("Do this now. x code Very much.") for tool in found.tools] == [True]
    assert len(found.tools[0].description) <= 1024
    assert [document["kind"] for document in yaml.safe_load_all(text)] == ["EventType", "Trigger"]


def test_one_bad_keyword_does_not_cost_the_operation(tmp_path: Path) -> None:
    properties = {"a": {"type": "string", "pattern": "(unclosed"}, "b": {"type": "elephant"}}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": properties}}}}

    (tool,) = found_in(
        written(tmp_path, openapi({"/a": {"post": {"summary": "Do.", "requestBody": body}}}))
    ).tools

    assert tool.parameters["properties"] == {"a": {"type": "string"}, "b": {}}
    assert len(tool.notes) == 2
