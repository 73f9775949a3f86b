"""The parameters of an EventType as JSON Schema 2020-12.

The schema is that of an object.

Accepted: a JSON Schema of draft 4 to 2020-12, an OpenAPI 3.x schema object, a bare map from parameter names
to schemas as in Knative's blog, type names of Python and of the prototype (`int`, `list:string`),
`{"type": "enum", "values": […]}`, properties without a type, nothing at all. `schemas.forms` describes how a
schema is distinguished from a map.
"""

import json
from typing import Any

import jsonschema_rs

from beckon_contract.schemas.errors import SchemaError, refuse
from beckon_contract.schemas.forms import as_schema
from beckon_contract.schemas.keywords import Path, Schema, stated_types
from beckon_contract.schemas.recursion import check_recursion, definition
from beckon_contract.schemas.translation import translate

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_PROPERTIES", "SchemaError", "normalise", "normalise_text"]

MAX_BYTES = 256 * 1024  # what Kubernetes allows for all annotations of an object together
MAX_DEPTH = 64
MAX_PROPERTIES = 1000

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


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
    _check_limits(document)
    schema = translate(as_schema(document))
    _check_valid(schema)
    check_recursion(schema)
    return _rooted(schema)


def _rooted(schema: Schema) -> dict[str, Any]:
    """Return the schema with type object at its root.

    Arguments are always an object.
    """
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
    stated = stated_types(schema)
    if stated or "$ref" not in schema or depth > len(definitions):
        return stated
    target = definitions.get(definition(schema["$ref"]))
    return _root_types(target, definitions, depth + 1) if isinstance(target, dict) else ()


def _check_valid(schema: Schema) -> None:
    try:
        jsonschema_rs.meta.validate({"$schema": _DIALECT, **schema})
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
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} is there twice in one object")
    return found


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
    return "a boolean" if isinstance(value, bool) else f"a {type(value).__name__}"


def _shorten(message: str) -> str:
    return message if len(message) <= 300 else message[:299] + "…"
