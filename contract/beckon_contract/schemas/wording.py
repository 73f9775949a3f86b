"""Constraints said in words in a description.

A provider does not take them as keywords.
"""

import json
from collections.abc import Callable
from typing import Any

from beckon_contract.schemas.keywords import Schema

MAX_VALUES = 20  # more values than that are noise in a description


def _one_of(values: Any) -> str | None:
    if not isinstance(values, list) or not 0 < len(values) <= MAX_VALUES:
        return None
    return "one of " + ", ".join(_literal(value) for value in values)


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _always(value: Any) -> str:
    return f"always {_literal(value)}"


def _default(value: Any) -> str:
    return f"default: {_literal(value)}"


def _unique(value: Any) -> str | None:
    return "no item twice" if value else None


def _plain(text: str) -> Callable[[Any], str]:
    return text.format


_PHRASES: dict[str, Callable[[Any], str | None]] = {
    "enum": _one_of,
    "const": _always,
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
    said = "; ".join(phrase for phrase in phrases if phrase)
    if not said:
        return str(text)
    return f"{text} ({said})" if text else said[0].upper() + said[1:]


def choices(branches: list[Schema]) -> str:
    """Return in words the combinations of properties to give, if stated."""
    groups = [branch.get("required") for branch in branches]
    named = [" and ".join(group) for group in groups if isinstance(group, list) and group]
    if len(named) < 2 or len(named) != len(groups) or len(named) > MAX_VALUES:
        return ""
    return "Give " + ", or ".join(named) + "."
