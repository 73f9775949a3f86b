"""A schema object in older or foreign spelling, respelt as JSON Schema 2020-12.

Only the keywords of the schema itself are touched; the schemas inside it keep their spelling.
"""

import re
from typing import Any

from beckon_contract.schema.keywords import ANNOTATIONS, KNOWN, Path, Schema, is_extension, refuse

_SPELLINGS = {
    "string": "string str text char varchar file secret",
    "integer": "integer int long short byte int32 int64 uint32 uint64",
    "number": "number float double decimal num numeric",
    "boolean": "boolean bool",
    "object": "object dict map mapping struct hash hashmap json",
    "array": "array list tuple set arraylist sequence",
    "null": "null none nonetype nil",
}
_TYPES = {spelling: name for name, spellings in _SPELLINGS.items() for spelling in spellings.split()}
_FORMATS = {"date": "date", "datetime": "date-time", "date-time": "date-time", "timestamp": "date-time"}
_ANYTHING = frozenset({"any", "unknown", "*"})
_LIST = re.compile(r"(?P<list>\w+)\s*(?::\s*(?P<plain>.+)|\[(?P<square>.+)\]|<(?P<angle>.+)>)", re.DOTALL)
_MAX_LENGTH = 100


def read_type(name: str) -> Schema | None:
    """Return the schema of a type name, or `None`.

    `None` means that the name is no type.

    Case does not matter (Gemini writes `STRING`). `list:T`, `list[T]` and `array<T>` are arrays of T,
    `A|B` is either, `any` is no constraint.
    """
    if len(name) > _MAX_LENGTH:
        return None
    return _read(name.strip().lower())


def _read(name: str) -> Schema | None:
    if name in _TYPES:
        return {"type": _TYPES[name]}
    if name in _FORMATS:
        return {"type": "string", "format": _FORMATS[name]}
    if name in _ANYTHING:
        return {}
    if match := _LIST.fullmatch(name):
        return _read_list(match)
    if "|" in name:
        return _read_union(name)
    return None


def _read_list(match: re.Match[str]) -> Schema | None:
    if _TYPES.get(match["list"]) != "array":
        return None
    items = _read((match["plain"] or match["square"] or match["angle"]).strip())
    return None if items is None else {"type": "array", "items": items}


def _read_union(name: str) -> Schema | None:
    branches = [_read(part.strip()) for part in name.split("|")]
    if any(branch is None for branch in branches):
        return None
    known = [branch for branch in branches if branch is not None]
    if all(set(branch) == {"type"} for branch in known):
        return {"type": list(dict.fromkeys(branch["type"] for branch in known))}
    return {"anyOf": known}


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
        name: _whole(value) if name in _COUNTS else value
        for name, value in schema.items()
        if name in KNOWN or is_extension(name)
    }


def _respell_type(schema: Schema, path: Path) -> None:
    kind = schema.get("type")
    if kind == "enum":
        _respell_enum(schema, path)
    elif isinstance(kind, str):
        del schema["type"]
        _merge(schema, _read_type(kind, path))
    elif isinstance(kind, list) and all(isinstance(name, str) for name in kind):
        read = [_read_type(name, path) for name in kind]
        plain = list(dict.fromkeys(part["type"] for part in read if set(part) == {"type"}))
        del schema["type"]
        if {} not in read:
            _merge(schema, {"type": plain} if len(plain) == len(kind) else {"anyOf": read})


def _read_type(name: str, path: Path) -> Schema:
    type_read = read_type(name)
    if type_read is None:
        raise refuse(
            "UnknownType",
            (*path, "type"),
            f"{name[:40]!r} is no type; write string, integer, number, boolean, array, object or null",
        )
    return type_read


def _merge(schema: Schema, notation: Schema) -> None:
    """Add the schema of a type name. Keywords of the schema itself are more precise than the name."""
    if "anyOf" in notation and "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", ()), notation]
        return
    original = dict(schema)
    schema.clear()
    schema |= {**notation, **original}


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
        bound = schema.get(exclusive)
        if isinstance(bound, bool):
            del schema[exclusive]
            if bound and plain in schema:
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
    dependencies = schema.pop("dependencies", None)
    if not isinstance(dependencies, dict):
        return
    for name, value in dependencies.items():
        keyword = "dependentRequired" if isinstance(value, list) else "dependentSchemas"
        schema[keyword] = {**schema.get(keyword, {}), name: value}


def _respell_required(schema: Schema, *, openapi: bool) -> None:
    """Hoist `required: true` of a property (draft 3, OpenAPI parameters) into the object's list."""
    if isinstance(schema.get("required"), bool):
        del schema["required"]
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    required = schema.get("required", [])
    if not isinstance(required, list):
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
    names = [name for name in [*required, *hoisted] if not (isinstance(name, str) and name in served)]
    if names != required:
        schema["required"] = list(dict.fromkeys(names))


def _respell_examples(schema: Schema) -> None:
    """OpenAPI: `example`, and `examples` as a map of named ones."""
    if "example" in schema:
        schema.setdefault("examples", [schema.pop("example")])
    if isinstance(schema.get("examples"), dict):
        schema["examples"] = list(schema["examples"].values())


def _with_null(schema: Schema) -> Schema:
    """OpenAPI 3.0: `nullable: true`."""
    kind = schema.get("type")
    if kind is None and not schema.keys() & (KNOWN - ANNOTATIONS):
        return schema
    if kind is None or schema.keys() & _BESIDE_TYPE:
        outside = {name: schema[name] for name in schema if name in ANNOTATIONS or is_extension(name)}
        inside = {name: schema[name] for name in schema if name not in outside}
        return {**outside, "anyOf": [inside, {"type": "null"}]}
    types = kind if isinstance(kind, list) else [kind]
    nullable = {**schema, "type": list(dict.fromkeys([*types, "null"]))}
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _whole(value: Any) -> Any:
    """`minLength: 2.0` is 2; providers insist on the whole number."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
