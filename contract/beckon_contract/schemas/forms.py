"""The form of a document: a JSON Schema or a map.

A bare map leads from parameter names to their schemas.

The rule. A document is a schema where it has a keyword in a shape that no parameter could have: `type` as a
string or a list, `properties` as a map of schemas, `$ref` or `$schema` as a string, or `allOf`, `anyOf`,
`oneOf` as a list. Everything else is a bare map, and each of its members that is an object (or a type's
name) is a parameter, whatever it is called. So:

- `{"type": {"type": "string"}}` is one parameter called `type`;
- `{"type": "string"}` is a schema, and refused, because the root is no object;
- `{"properties": {"a": {"type": "string"}}}` is a schema with the parameter `a`;
- `{"properties": {"type": "object", "properties": {…}}}` is one parameter called `properties`, because its
  value is itself a schema;
- `{"items": {"type": "array"}}` and `{"required": {"type": "boolean"}}` are bare maps;
- beside parameters, a keyword that cannot be one keeps its meaning: `{"a": {…}, "required": ["a"]}`.

To avoid guessing, write `{"type": "object", "properties": {…}}`.
"""

from beckon_contract.schemas.errors import refuse
from beckon_contract.schemas.keywords import KNOWN, MANY, Schema
from beckon_contract.schemas.notation import read_type

_LEGACY = frozenset({
    "$anchor", "$comment", "$defs", "$id", "$schema", "definitions", "dependencies", "discriminator",
    "example", "externalDocs", "id", "nullable", "xml",
})  # fmt: skip
_DEFINITIONS = ("$defs", "definitions")
_HOLDERS = frozenset({
    "$ref", "additionalProperties", "allOf", "anyOf", "oneOf", "patternProperties", "properties",
})  # fmt: skip


def as_schema(document: Schema) -> Schema:
    """Return the document as a schema, a bare map wrapped into one."""
    _refuse_declaration(document)
    if _is_schema(document):
        _refuse_misplaced(document)
        return document
    return _wrap(document)


def _is_schema(document: Schema) -> bool:
    return (
        isinstance(document.get("type"), str | list)
        or any(isinstance(document.get(keyword), str) for keyword in ("$ref", "$schema"))
        or any(isinstance(document.get(keyword), list) for keyword in MANY)
        or _is_map_of_schemas(document.get("properties"))
    )


def _is_map_of_schemas(value: object) -> bool:
    if not isinstance(value, dict) or isinstance(value.get("type"), str | list):
        return False
    return all(
        entry is None
        or isinstance(entry, dict | bool)
        or (isinstance(entry, str) and read_type(entry) is not None)
        for entry in value.values()
    )


def _wrap(document: Schema) -> Schema:
    schema: Schema = {"type": "object"}
    properties: Schema = {}
    for name, value in document.items():
        if name == "properties" and value is None:
            continue  # null says as much as leaving it out
        if name in _DEFINITIONS and _is_map_of_schemas(value):
            schema[name] = value
        elif isinstance(value, dict) or (isinstance(value, str) and read_type(value) is not None):
            properties[name] = value
        elif name in KNOWN or name in _LEGACY:
            schema[name] = value
        elif not name.startswith("x-"):
            raise refuse(
                "NotASchema",
                (name,),
                f'the parameter {name!r} needs a schema; write {{"type": "string", "description": "…"}}',
            )
    schema.setdefault("properties", properties)  # one of another type is there to be refused
    return schema


def _refuse_declaration(document: Schema) -> None:
    """Refuse a whole function declaration, as OpenAI and MCP have them, in place of its parameters."""
    name = document.get("name", document.get("type"))
    if not isinstance(name, str) or read_type(name) is not None:
        return
    for member in ("parameters", "inputSchema", "input_schema", "function"):
        if isinstance(document.get(member), dict):
            raise refuse("MisplacedParameters", (member,), f"write only what stands under {member!r}")


def _refuse_misplaced(document: Schema) -> None:
    """Refuse `{"type": "object", "city": {"type": "string"}}`: read as a schema it has no parameter."""
    if _HOLDERS & document.keys():
        return
    for name, value in document.items():
        unknown = name not in KNOWN and name not in _LEGACY and not name.startswith("x-")
        if unknown and isinstance(value, dict) and isinstance(value.get("type"), str):
            raise refuse("MisplacedParameters", (name,), f"move {name!r} into an object under `properties`")
