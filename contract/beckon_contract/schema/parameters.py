"""The parameters of an EventType as JSON Schema 2020-12.

Accepted: a JSON Schema of draft 4 to 2020-12, an OpenAPI 3.x schema object, a bare map from parameter names
to schemas as in Knative's blog, type names of Python and of the prototype (`int`, `list:string`),
`{"type": "enum", "values": […]}`, properties without a type, nothing at all.

A document is a schema where it has a keyword in a shape that no parameter could have: `type` as a
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

import json
from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from beckon_contract.schema.expansion import check_recursion, definition
from beckon_contract.schema.keywords import (
    DIALECT,
    KNOWN,
    MANY,
    Path,
    Schema,
    SchemaError,
    is_extension,
    refuse,
    stated_types,
    without_extensions,
)
from beckon_contract.schema.respelling import read_type
from beckon_contract.schema.translation import translate

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
        elif name in KNOWN or name in _LEGACY or is_extension(name):
            schema[name] = value
        else:
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
            raise refuse("MisplacedParameters", (member,), f"write only the value of {member!r}")


def _refuse_misplaced(document: Schema) -> None:
    """Refuse `{"type": "object", "city": {"type": "string"}}`: read as a schema it has no parameter."""
    if _HOLDERS & document.keys():
        return
    for name, value in document.items():
        unknown = name not in KNOWN and name not in _LEGACY and not is_extension(name)
        if unknown and isinstance(value, dict) and isinstance(value.get("type"), str):
            raise refuse("MisplacedParameters", (name,), f"move {name!r} into an object under `properties`")


__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "MAX_PROPERTIES",
    "SchemaError",
    "normalise",
    "normalise_result",
    "normalise_text",
]

MAX_BYTES = 256 * 1024  # what Kubernetes allows for all annotations of an object together
MAX_DEPTH = 64
MAX_PROPERTIES = 1000


def normalise_text(text: str | bytes) -> dict[str, Any]:
    """Return the parameters in a JSON text.

    Blank text has none.

    Raises `SchemaError` as `normalise` does, and with the reason NotJson.
    """
    if len(text) > MAX_BYTES:
        raise _too_large(len(text))
    try:
        decoded = text.decode("utf-8-sig") if isinstance(text, bytes) else text.removeprefix("\ufeff")
        document = (
            json.loads(decoded or "null", object_pairs_hook=_unique, parse_constant=_refuse_constant)
            if decoded.strip()
            else None
        )
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise refuse(
            "NotJson", (), f"the text is not JSON: {error}; write JSON, in quotes inside YAML"
        ) from None
    return normalise(document)


def normalise(document: object) -> dict[str, Any]:
    """Return the parameters as `{"type": "object", "properties": {…}, …}` in JSON Schema 2020-12.

    The result is the normal form that `schemas.translation` describes: every `$ref` is `#/$defs/NAME`. Raises
    `SchemaError` with a reason, the place and the cure for whatever cannot be used.
    """
    if document is None:
        return {"type": "object", "properties": {}}
    if isinstance(document, str | bytes):
        raise refuse("NotAnObject", (), "the parameters are a text; write them as a JSON object")
    if not isinstance(document, dict):
        raise refuse("NotAnObject", (), f"the parameters are no object but {_kind(document)}; write {{…}}")
    return _rooted(_to_normal_form(document, sent=True))


def normalise_result(document: object) -> dict[str, Any]:
    """Return the schema of a tool's result in the normal form; a result may be any JSON.

    Accepts the forms that `normalise` accepts. Raises `SchemaError` as it does.
    """
    if not isinstance(document, dict):
        raise refuse("NotAnObject", (), f'the schema of the result is {_kind(document)}; write {{"type": …}}')
    return _to_normal_form(document, sent=False)


def _to_normal_form(document: dict[str, Any], *, sent: bool) -> Schema:
    _check_limits(document)
    schema = translate(as_schema(document), sent=sent)
    _check_valid(schema)
    check_recursion(schema)
    return schema


def _rooted(schema: Schema) -> dict[str, Any]:
    """Return the schema with type object at its root. Arguments are always an object."""
    types = _root_types(schema, schema.get("$defs", {}))
    if types and "object" not in types:
        raise refuse(
            "RootNotObject",
            ("type",),
            f"the arguments of a call are an object, not {' or '.join(types)}; write "
            '{"type": "object", "properties": {"NAME": …}}; a parameter called `type` is '
            '{"type": {"type": "string"}}',
        )
    rest = {name: value for name, value in schema.items() if name not in ("type", "properties")}
    return {"type": "object", "properties": schema.get("properties", {}), **rest}


def _root_types(schema: Schema, definitions: Schema, depth: int = 0) -> tuple[str, ...]:
    """Return the types of the root, stated or by reference."""
    types = stated_types(schema)
    if types or "$ref" not in schema or depth > len(definitions):
        return types
    target = definitions.get(definition(schema["$ref"]))
    return _root_types(target, definitions, depth + 1) if isinstance(target, dict) else ()


def _check_valid(schema: Schema) -> None:
    try:
        jsonschema_rs.meta.validate({"$schema": DIALECT, **schema})
        jsonschema_rs.Draft202012Validator(schema)
    except jsonschema_rs.ValidationError as error:
        path = tuple(str(token) for token in error.instance_path)
        cure = "; write a simpler regular expression" if "pattern" in path[-1:] else ""
        raise refuse("InvalidSchema", path, _shorten(error.message) + cure) from None
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise refuse("InvalidSchema", (), _shorten(str(error))) from None


def _check_limits(document: dict[str, Any]) -> None:
    properties = visited = 0
    pending: list[tuple[Path, object]] = [((), document)]
    while pending:
        path, node = pending.pop()
        visited += 1
        if len(path) > MAX_DEPTH:
            raise _too_deep()
        if visited > MAX_BYTES:  # a value takes a byte at least; YAML's aliases can make very many of few
            raise _too_large(visited)
        if isinstance(node, dict):
            properties += len(node["properties"]) if isinstance(node.get("properties"), dict) else 0
            pending.extend((_inside(path, name), value) for name, value in node.items())
        elif isinstance(node, list):
            pending.extend(((*path, str(number)), value) for number, value in enumerate(node))
    if properties > MAX_PROPERTIES or len(document) > MAX_PROPERTIES:
        raise refuse(
            "TooManyProperties", (), f"more than {MAX_PROPERTIES} properties; offer fewer parameters"
        )
    _check_size(document)


def _check_size(document: dict[str, Any]) -> None:
    try:
        size = len(json.dumps(document, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError) as error:
        raise refuse("NotJson", (), f"not everything in the parameters is JSON: {error}") from None
    if size > MAX_BYTES:
        raise _too_large(size)


def _inside(path: Path, name: object) -> Path:
    if not isinstance(name, str):
        raise refuse("NotJson", path, f"the key {name!r} is no string; write it in quotes")
    return (*path, name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice in one object")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _too_large(size: int) -> SchemaError:
    return refuse(
        "TooLarge", (), f"{size} bytes are over the limit of {MAX_BYTES}; shorten or split the schema"
    )


def _too_deep() -> SchemaError:
    return refuse(
        "TooDeep", (), f"nested more than {MAX_DEPTH} levels deep; move inner schemas under `$defs`"
    )


def _kind(value: object) -> str:
    if isinstance(value, list):
        return "an array"
    if value is None:
        return "null"
    return "a boolean" if isinstance(value, bool) else f"a {type(value).__name__}"


def _shorten(message: str) -> str:
    return message if len(message) <= 300 else message[:299] + "…"


def parameters_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the changes of parameters in words, "" without changes.

    `before` is normalised already. Keywords that only programs read, such as `$schema`, do not count.
    """
    try:
        after = normalise(now)
    except SchemaError:
        return "parameters that cannot be used"
    if without_extensions(after) == without_extensions(dict(before)):
        return ""
    old, new = _names(before), _names(after)
    gone, added = sorted(old - new), sorted(new - old)
    changes = [f"no parameter {name}" for name in gone] + [f"a new parameter {name}" for name in added]
    return " and ".join(changes) or "other parameters"


def _names(schema: Mapping[str, Any]) -> set[str]:
    properties = schema.get("properties")
    return set(properties) if isinstance(properties, Mapping) else set()
