"""One schema object in the spelling of older drafts, OpenAPI 3.0 or the prototype, respelt as 2020-12.

Only the keywords of the schema itself are touched; the schemas inside it keep their spelling.
"""

from typing import Any

from beckon_contract.schemas.errors import refuse
from beckon_contract.schemas.keywords import ANNOTATIONS, KNOWN, Path, Schema
from beckon_contract.schemas.notation import read_type

_LITERALS = frozenset({"const", "default", "enum", "example", "examples"})
_COUNTS = frozenset({
    "maxContains", "maxItems", "maxLength", "maxProperties", "minContains", "minItems", "minLength",
    "minProperties",
})  # fmt: skip
_DYNAMIC = ("$dynamicRef", "$recursiveRef")
_BESIDE_TYPE = frozenset({"$ref", "allOf", "anyOf", "const", "if", "not", "oneOf"})


def respell(node: Schema, path: Path, *, openapi: bool) -> Schema:
    """Return the keywords of one schema in 2020-12 spelling; `$ref` is left for the caller to follow.

    `openapi` says that `readOnly` properties need not be sent, as in OpenAPI 3 requests.
    Raises `SchemaError` for what has no counterpart.
    """
    schema = {name: value for name, value in node.items() if value is not None or name in _LITERALS}
    for keyword in _DYNAMIC:
        if keyword in schema:
            raise refuse(
                "UnsupportedKeyword", (*path, keyword), "dynamic references are not supported; use `$ref`"
            )
    _respell_type(schema, path)
    _respell_bounds(schema)
    _respell_items(schema)
    _respell_dependencies(schema)
    _respell_required(schema, openapi=openapi)
    _respell_examples(schema)
    if schema.pop("nullable", None) is True:
        schema = _with_null(schema)
    return {
        name: _whole(value) if name in _COUNTS else value for name, value in schema.items() if name in KNOWN
    }


def _respell_type(schema: Schema, path: Path) -> None:
    stated = schema.get("type")
    if stated == "enum":
        _respell_enum(schema, path)
    elif isinstance(stated, str):
        del schema["type"]
        _merge(schema, _read_type(stated, path))
    elif isinstance(stated, list) and all(isinstance(name, str) for name in stated):
        read = [_read_type(name, path) for name in stated]
        plain = list(dict.fromkeys(part["type"] for part in read if set(part) == {"type"}))
        del schema["type"]
        if {} not in read:
            _merge(schema, {"type": plain} if len(plain) == len(stated) else {"anyOf": read})


def _read_type(name: str, path: Path) -> Schema:
    found = read_type(name)
    if found is None:
        raise refuse(
            "UnknownType",
            (*path, "type"),
            f"{name[:40]!r} is no type; write string, integer, number, boolean, array, object or null",
        )
    return found


def _merge(schema: Schema, notation: Schema) -> None:
    """Add the schema of a type name.

    Keywords of the schema itself are more precise than the name.
    """
    if "anyOf" in notation and "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), notation]
        return
    said = dict(schema)
    schema.clear()
    schema |= {**notation, **said}


def _respell_enum(schema: Schema, path: Path) -> None:
    """`{"type": "enum", "values": […]}`."""
    values = schema.get("enum", schema.get("values"))
    if not isinstance(values, list) or not values:
        raise refuse("InvalidSchema", path, 'a parameter of type enum lists its values: {"enum": ["a", "b"]}')
    schema["enum"] = values
    del schema["type"]
    if all(isinstance(value, str) for value in values):
        schema["type"] = "string"


def _respell_bounds(schema: Schema) -> None:
    """Draft 4 and OpenAPI 3.0: `exclusiveMinimum: true` beside `minimum`."""
    for plain, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        stated = schema.get(exclusive)
        if isinstance(stated, bool):
            del schema[exclusive]
            if stated and plain in schema:
                schema[exclusive] = schema.pop(plain)


def _respell_items(schema: Schema) -> None:
    """Up to 2019-09: `items` as a list, with `additionalItems` for the rest."""
    rest = schema.pop("additionalItems", None)
    if not isinstance(schema.get("items"), list):
        return
    schema["prefixItems"] = schema.pop("items")
    if not schema["prefixItems"]:
        del schema["prefixItems"]
    if rest is not None:
        schema["items"] = rest


def _respell_dependencies(schema: Schema) -> None:
    """Up to draft 7: `dependencies`, of names or of schemas."""
    stated = schema.pop("dependencies", None)
    if not isinstance(stated, dict):
        return
    for name, value in stated.items():
        keyword = "dependentRequired" if isinstance(value, list) else "dependentSchemas"
        schema[keyword] = {**schema.get(keyword, {}), name: value}


def _respell_required(schema: Schema, *, openapi: bool) -> None:
    """Hoist `required: true` of a property (draft 3, OpenAPI parameters) into the object's list."""
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    stated = schema.get("required", [])
    if not isinstance(stated, list):
        return
    hoisted = [
        name
        for name, entry in properties.items()
        if isinstance(entry, dict) and entry.get("required") is True
    ]
    served = {
        name
        for name, entry in properties.items()
        if openapi and isinstance(entry, dict) and entry.get("readOnly") is True
    }
    names = [name for name in [*stated, *hoisted] if not (isinstance(name, str) and name in served)]
    if names != stated:
        schema["required"] = list(dict.fromkeys(names))


def _respell_examples(schema: Schema) -> None:
    """OpenAPI: `example`, and `examples` as a map of named ones."""
    if "example" in schema:
        schema.setdefault("examples", [schema.pop("example")])
    if isinstance(schema.get("examples"), dict):
        schema["examples"] = list(schema["examples"].values())


def _with_null(schema: Schema) -> Schema:
    """OpenAPI 3.0: `nullable: true`."""
    stated = schema.get("type")
    if stated is None and not schema.keys() & (KNOWN - ANNOTATIONS):
        return schema
    if stated is None or schema.keys() & _BESIDE_TYPE:
        outside = {name: value for name, value in schema.items() if name in ANNOTATIONS}
        inside = {name: value for name, value in schema.items() if name not in ANNOTATIONS}
        return {**outside, "anyOf": [inside, {"type": "null"}]}
    types = stated if isinstance(stated, list) else [stated]
    nullable = {**schema, "type": list(dict.fromkeys([*types, "null"]))}
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _whole(value: Any) -> Any:
    """`minLength: 2.0` is 2; providers insist on the whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
