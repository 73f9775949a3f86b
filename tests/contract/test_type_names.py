"""Names of types as people and models write them, and what is no name of a type."""

from typing import Any

import pytest

from beckon_contract.schema.respelling import read_type


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("STRING", {"type": "string"}),
        (" int ", {"type": "integer"}),
        ("datetime", {"type": "string", "format": "date-time"}),
        ("any", {}),
        ("list: int", {"type": "array", "items": {"type": "integer"}}),
        ("list[list[string]]", {"type": "array", "items": {"type": "array", "items": {"type": "string"}}}),
        ("array<any>", {"type": "array", "items": {}}),
        ("string|null|string", {"type": ["string", "null"]}),
        ("date | integer", {"anyOf": [{"type": "string", "format": "date"}, {"type": "integer"}]}),
    ],
)
def test_a_name_becomes_a_schema(name: str, schema: dict[str, Any]) -> None:
    assert read_type(name) == schema


@pytest.mark.parametrize(
    "name",
    ["", "colour", "string[colour]", "list[colour]", "string|colour", "list[" * 20 + "int" + "]" * 20],
)
def test_another_name_becomes_none(name: str) -> None:
    assert read_type(name) is None
