"""The vocabulary of JSON Schema 2020-12, and the error for refused parameters."""

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str, ...]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

ONE = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
"""Keywords whose value is one schema."""

MANY = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords whose value is a list of schemas."""

NAMED = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose value maps names to schemas."""

IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
"""Keywords whose schemas apply to the very instance that the schema around them applies to."""

ANNOTATIONS = frozenset(
    {
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "deprecated",
        "description",
        "examples",
        "format",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""Keywords that never refuse an instance; `format` is one of them (2020-12 validation, 7.2.1)."""

ASSERTIONS = frozenset(
    {
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    }
)
"""Keywords that refuse instances by themselves."""

KNOWN = ONE | MANY | NAMED | ANNOTATIONS | ASSERTIONS | {"$ref"}
"""All that a normalised schema may hold, with `EXTENSIONS`."""

EXTENSIONS = frozenset({"$anchor", "$schema"})
"""Keywords for programs that read a schema, with those that begin with `x-`. No model reads them."""


def is_extension(keyword: str) -> bool:
    """Return True for a keyword that programs read and neither validation nor a model needs."""
    return keyword in EXTENSIONS or keyword.startswith("x-")


def without_extensions(schema: Schema) -> Schema:
    """Return a schema in normal form without the extensions, at any depth."""

    def strip_child(_: Path, child: Any) -> Any:
        return without_extensions(child) if isinstance(child, dict) else child

    return {
        keyword: rebuild(keyword, value, strip_child)
        for keyword, value in schema.items()
        if not is_extension(keyword)
    }


TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def children(schema: Schema) -> Iterator[tuple[Path, object]]:
    """Yield every direct subschema of a schema with its path inside it; malformed ones are passed over."""
    for keyword, value in schema.items():
        if keyword in ONE:
            yield (keyword,), value
        elif keyword in MANY and isinstance(value, list):
            for number, entry in enumerate(value):
                yield (keyword, str(number)), entry
        elif keyword in NAMED and isinstance(value, dict):
            for name, entry in value.items():
                yield (keyword, name), entry


def rebuild(keyword: str, value: Any, change: Callable[[Path, Any], Any]) -> Any:
    """Return a keyword's value with each subschema in it changed; `change` is given its path, too."""
    if keyword in ONE:
        return change((keyword,), value)
    if keyword in MANY and isinstance(value, list):
        return [change((keyword, str(number)), entry) for number, entry in enumerate(value)]
    if keyword in NAMED and isinstance(value, dict):
        return {name: change((keyword, name), entry) for name, entry in value.items()}
    return value


def pointer(path: Path) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in path)


def stated_types(schema: Schema) -> tuple[str, ...]:
    """Return the types a schema states, empty without any."""
    types = schema.get("type")
    if isinstance(types, str):
        return (types,)
    return tuple(types) if isinstance(types, list) else ()


class SchemaError(ValueError):
    """Unusable parameters: the reason, the place and the correction.

    `reason` is in CamelCase, `path` is a JSON Pointer, `message` says what to write instead.

    `reason` is one of NotJson, NotAnObject, NotASchema, RootNotObject, MisplacedParameters, UnknownType,
    UnsupportedDialect, UnsupportedKeyword, RemoteReference, UnresolvableReference, UnboundedRecursion,
    TooLarge, TooDeep, TooManyProperties, InvalidSchema.
    """

    def __init__(self, reason: str, path: str, message: str) -> None:
        super().__init__(f"{path or 'the parameters'}: {message}")
        self.reason = reason
        self.path = path
        self.message = message


def refuse(reason: str, path: Path, message: str) -> SchemaError:
    """Return the error for a place in the document."""
    return SchemaError(reason, pointer(path), message)
