"""The `parameters` accepted by OpenAI and compatible servers, also with `strict: true`.

Rules: the root is an object without `anyOf`, `oneOf`, `allOf`, `enum` or `not`
(langchain-ai/langchainjs#9804), an array names its `items`. All else is left as it is, save what cannot be
loosened inside and stay true: `not`, `if`, `oneOf` (said as `anyOf`) and the `unevaluated…` keywords.

Strict mode cannot express all schemas.

Its rules: every object names all its properties, requires them all and allows no others, so an optional one
may be null; no `default`, `oneOf`, `allOf`, no siblings of `$ref`, no value or array of unknown type; at most
10 levels, 5000 properties, 1000 enum values (OpenAI's guide to structured outputs; pydantic-ai
profiles/openai.py). Bounds, formats and patterns are said in words: not every server and model with strict
mode takes them.
"""

import json
from collections.abc import Callable
from typing import Any

from beckon_contract.schema.expansion import Expansion, Stack, absorb, conjunction
from beckon_contract.schema.keywords import Schema, rebuild, stated_types

MAX_VALUES = 20  # more values than that are noise in a description


def _one_of(values: Any) -> str | None:
    if not isinstance(values, list) or not 0 < len(values) <= MAX_VALUES:
        return None
    return "one of " + ", ".join(_literal(value) for value in values)


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _constant(value: Any) -> str:
    return f"always {_literal(value)}"


def _default(value: Any) -> str:
    return f"default: {_literal(value)}"


def _unique(value: Any) -> str | None:
    return "no item twice" if value else None


def _plain(text: str) -> Callable[[Any], str]:
    return text.format


_PHRASES: dict[str, Callable[[Any], str | None]] = {
    "enum": _one_of,
    "const": _constant,
    "format": _plain("format: {}"),
    "pattern": _plain("matches {}"),
    "minLength": _plain("at least {} characters"),
    "maxLength": _plain("at most {} characters"),
    "minimum": _plain("at least {}"),
    "maximum": _plain("at most {}"),
    "exclusiveMinimum": _plain("more than {}"),
    "exclusiveMaximum": _plain("less than {}"),
    "multipleOf": _plain("a multiple of {}"),
    "minItems": _plain("at least {} items"),
    "maxItems": _plain("at most {} items"),
    "uniqueItems": _unique,
    "minProperties": _plain("at least {} properties"),
    "maxProperties": _plain("at most {} properties"),
    "default": _default,
}


def describe(schema: Schema, dropped: frozenset[str] | set[str]) -> str:
    """Return the description of a schema, with constraints in words.

    They are the `dropped` ones. A schema without a description has its title instead.
    """
    text = schema.get("description") or schema.get("title") or ""
    phrases = [
        _PHRASES[keyword](schema[keyword]) for keyword in _PHRASES if keyword in dropped and keyword in schema
    ]
    if schema.get("not") == {}:
        phrases.append("must not be given")
    constraints = "; ".join(phrase for phrase in phrases if phrase)
    if not constraints:
        return str(text)
    return f"{text} ({constraints})" if text else constraints[0].upper() + constraints[1:]


def choices(branches: list[Schema]) -> str:
    """Return in words the combinations of properties to give, if stated."""
    groups = [branch.get("required") for branch in branches]
    alternatives = [" and ".join(group) for group in groups if isinstance(group, list) and group]
    if len(alternatives) < 2 or len(alternatives) != len(groups) or len(alternatives) > MAX_VALUES:
        return ""
    return "Give " + ", or ".join(alternatives) + "."


_SPEAKING = ("description", "title", "default", "examples")
_NOT_AT_ROOT = ("$defs", "const", "enum", "properties", "type")
_HINTS = (
    ("object", ("properties", "required", "additionalProperties", "patternProperties")),
    ("array", ("items", "prefixItems")),
)


def types_of(schema: Schema) -> tuple[str, ...]:
    """Return the types of a schema, stated or inferred.

    They are inferred from its values and keywords; the result is empty if these show none.
    """
    types = stated_types(schema)
    if types:
        return types
    values = schema["enum"] if isinstance(schema.get("enum"), list) else None
    if values is None and "const" in schema:
        values = [schema["const"]]
    if values:
        return tuple(dict.fromkeys(_type_of(value) for value in values))
    return tuple(name for name, keywords in _HINTS if any(keyword in schema for keyword in keywords))[:1]


def alternatives(schema: Schema, expansion: Expansion, stack: Stack) -> list[tuple[Schema, Stack]]:
    """Return the expanded branches of `anyOf`, else of `oneOf`, if any."""
    branches = schema.get("anyOf") or schema.get("oneOf")
    if not isinstance(branches, list):
        return []
    return [expansion.expand(branch, stack) for branch in branches]


def without_alternatives(schema: Schema) -> Schema:
    """Return the schema without `anyOf` and `oneOf`."""
    return {keyword: value for keyword, value in schema.items() if keyword not in ("anyOf", "oneOf")}


def absorb_branches(base: Schema, branches: list[tuple[Schema, Stack]], stack: Stack) -> tuple[Schema, Stack]:
    """Return an object with its alternatives absorbed. Its description says which of them go together."""
    plain = [branch for branch, _ in branches]
    merged = absorb(base, plain)
    if description := " ".join(text for text in (base.get("description"), choices(plain)) if text):
        merged["description"] = description
    return merged, stack.beside(inside for _, inside in branches)


def flatten_root(schema: Schema, expansion: Expansion) -> tuple[Schema, Stack]:
    """Return the root as one object: its references written out, its alternatives absorbed."""
    root, stack = expansion.expand(schema, Stack())
    branches = alternatives(root, expansion, stack)
    if branches:
        root, stack = absorb_branches(without_alternatives(root), branches, stack)
    rest = {keyword: value for keyword, value in root.items() if keyword not in _NOT_AT_ROOT}
    return {"type": "object", "properties": root.get("properties", {}), **rest}, stack


def lower_whole(schema: Schema, expansion: Expansion, members: Callable[[Schema, Stack], Schema]) -> Schema:
    """Return the root lowered by `members`, with its definitions.

    Only definitions that are still referred to are included.
    """
    root = members(*flatten_root(schema, expansion))
    return root | expansion.lowered_definitions(members)


def distribute(base: Schema, branch: Schema) -> Schema:
    """Return one branch with the schema around it, its own words first."""
    described = {keyword: branch[keyword] for keyword in _SPEAKING if keyword in branch}
    return {**conjunction([base, branch]), **described}


def items_of(schema: Schema) -> Any:
    """Return one schema for every item of an array.

    The items of a tuple are included. The result is `None` if nothing is said.
    """
    leading = schema.get("prefixItems")
    rest = schema.get("items")
    if not isinstance(leading, list) or not leading:
        return rest
    if rest is None or rest is True:
        return {}
    several = [*leading] if rest is False else [*leading, rest]
    unique = [entry for number, entry in enumerate(several) if entry not in several[:number]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def _type_of(value: object) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "object"


_LEFT_OUT = frozenset({
    "$defs", "$ref", "allOf", "contentEncoding", "contentMediaType", "contentSchema", "description",
    "else", "if", "maxContains", "not", "oneOf", "readOnly", "then", "title", "unevaluatedItems",
    "unevaluatedProperties", "writeOnly",
})  # fmt: skip
_MAY_BE_FALSE = ("additionalProperties",)


def lower_for_openai(schema: Schema) -> Schema:
    """Return a schema in normal form as OpenAI-compatible servers accept it; it only accepts more."""
    expansion = Expansion(schema)
    return lower_whole(schema, expansion, _OpenAI(expansion).members)


class _OpenAI:
    def __init__(self, expansion: Expansion) -> None:
        self._expansion = expansion

    def _lower(self, node: Any, stack: Stack) -> Schema:
        return self._expansion.lowered(node, stack, self.members)

    def members(self, node: Schema, stack: Stack) -> Schema:
        """Lower an expanded schema."""
        if "oneOf" in node and "anyOf" not in node:
            node = {**node, "anyOf": node["oneOf"]}
        lowered: Schema = {}
        for keyword, value in node.items():
            if keyword in _MAY_BE_FALSE and isinstance(value, bool):
                lowered[keyword] = value
            elif keyword not in _LEFT_OUT and not (keyword == "enum" and not value):
                lowered[keyword] = rebuild(keyword, value, lambda _, child: self._lower(child, stack))
        if "array" in types_of(node):
            lowered.setdefault("items", {})
        if description := describe(node, set()):
            lowered["description"] = description
        return lowered


MAX_PROPERTIES = 5000
MAX_ENUM_VALUES = 1000
MAX_LEVELS = 10

_IN_WORDS = frozenset({
    "default", "exclusiveMaximum", "exclusiveMinimum", "format", "maxItems", "maxLength", "maximum",
    "minItems", "minLength", "minimum", "multipleOf", "pattern", "uniqueItems",
})  # fmt: skip
_SCALARS = frozenset({"boolean", "integer", "null", "number", "string"})


class _NotStrictError(Exception):
    """Something in the schema has no counterpart in strict mode."""


def lower_for_openai_strict(schema: Schema) -> Schema | None:
    """Return a schema as strict mode accepts it, or `None`.

    The schema is in normal form. `None` means that strict mode cannot express it.
    """
    try:
        return _Strict(schema).run(schema)
    except _NotStrictError:
        return None


class _Strict:
    def __init__(self, schema: Schema) -> None:
        self._expansion = Expansion(schema)
        self._properties = 0
        self._values = 0

    def run(self, schema: Schema) -> Schema:
        if "anyOf" in (root := self._expansion.expand(schema, Stack())[0]) or "oneOf" in root:
            raise _NotStrictError  # which properties go together could not be said
        node, stack = flatten_root(schema, self._expansion)
        if not node["properties"]:
            _refuse_unless(node.get("additionalProperties", False) is False)
            node = {**node, "additionalProperties": False}
        lowered = self._object(node, stack, 1)
        return lowered | self._expansion.lowered_definitions(
            lambda inner, inside: self._members(inner, inside, 1)
        )

    def _lower(self, node: Any, stack: Stack, level: int) -> Schema:
        return self._expansion.reference(node) or self._members(*self._expansion.expand(node, stack), level)

    def _members(self, node: Schema, stack: Stack, level: int) -> Schema:
        _refuse_unless(level <= MAX_LEVELS and node.get("not") != {})
        branches = alternatives(node, self._expansion, stack)
        if branches:
            return self._union(without_alternatives(node), branches, level)
        types = types_of(node)
        _refuse_unless(bool(types))
        if len(types) > 1 and not _SCALARS.issuperset(types):
            each = [self._members({**node, "type": name, "description": ""}, stack, level) for name in types]
            return _described({"anyOf": each}, node)
        if types == ("object",):
            return self._object(node, stack, level)
        if types == ("array",):
            _refuse_unless("prefixItems" not in node and isinstance(node.get("items"), dict))
            return _described({"type": "array", "items": self._lower(node["items"], stack, level + 1)}, node)
        return self._scalar(node, types)

    def _union(self, base: Schema, branches: list[tuple[Schema, Stack]], level: int) -> Schema:
        inner = {keyword: value for keyword, value in base.items() if keyword != "description"}
        each = [self._members(distribute(inner, branch), stack, level) for branch, stack in branches]
        return _described({"anyOf": each}, {"description": base.get("description", "")})

    def _object(self, node: Schema, stack: Stack, level: int) -> Schema:
        properties = node.get("properties") or {}
        closed = node.get("additionalProperties", None if properties else True)
        _refuse_unless(closed in (None, False) and "patternProperties" not in node)
        self._properties += len(properties)
        _refuse_unless(self._properties <= MAX_PROPERTIES)
        required = node.get("required", [])
        _refuse_unless(set(required) <= properties.keys())
        lowered = {
            name: child if name in required else _nullable(child)
            for name, child in (
                (name, self._lower(entry, stack, level + 1)) for name, entry in properties.items()
            )
        }
        shape = {
            "type": "object",
            "properties": lowered,
            "required": list(properties),
            "additionalProperties": False,
        }
        return _described(shape, node)

    def _scalar(self, node: Schema, types: tuple[str, ...]) -> Schema:
        lowered: Schema = {"type": types[0] if len(types) == 1 else list(types)}
        values = node.get("enum", [node["const"]] if "const" in node else None)
        if values:
            self._values += len(values)
            _refuse_unless(self._values <= MAX_ENUM_VALUES)
            lowered["enum"] = values
        return _described(lowered, node)


def _described(lowered: Schema, node: Schema) -> Schema:
    description = describe(node, _IN_WORDS)
    return {**lowered, "description": description} if description else lowered


def _nullable(lowered: Schema) -> Schema:
    """Let an optional property be null, which is how strict schemas leave it out."""
    kinds = lowered.get("type")
    if kinds is None or "object" in kinds or "array" in kinds:
        described = {"description": lowered["description"]} if "description" in lowered else {}
        branches = lowered.get("anyOf") or [
            {key: value for key, value in lowered.items() if key != "description"}
        ]
        if {"type": "null"} in branches:
            return lowered
        return {"anyOf": [*branches, {"type": "null"}], **described}
    types = [kinds] if isinstance(kinds, str) else kinds
    nullable = {**lowered, "type": list(dict.fromkeys([*types, "null"]))}
    if "enum" in lowered and None not in lowered["enum"]:
        nullable["enum"] = [*lowered["enum"], None]
    return nullable


def _refuse_unless(sayable: bool) -> None:
    if not sayable:
        raise _NotStrictError
