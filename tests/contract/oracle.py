"""The second opinion on JSON Schema: the `jsonschema` package, where ours is `jsonschema-rs`."""

from collections.abc import Mapping
from typing import Any

from jsonschema import (
    Draft202012Validator,
    FormatChecker,
)

_NO_FORMATS = FormatChecker(())  # it would read patterns, which are ECMAScript's, as Python's


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raise where a schema is not valid against the metaschema of 2020-12."""
    Draft202012Validator.check_schema(schema, format_checker=_NO_FORMATS)


def is_valid(schema: Mapping[str, Any], instance: object) -> bool:
    """Whether an instance satisfies a schema."""
    return bool(Draft202012Validator(schema).is_valid(instance))
