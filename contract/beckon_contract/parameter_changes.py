"""The changes in the parameters of a tool."""

from collections.abc import Mapping
from typing import Any

from beckon_contract.parameters import SchemaError, normalise


def parameters_changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return the changes of parameters in words, "" without changes.

    `before` is normalised already.
    """
    try:
        after = normalise(now)
    except SchemaError:
        return "parameters that cannot be used"
    if after == before:
        return ""
    old, new = _names(before), _names(after)
    gone, added = sorted(old - new), sorted(new - old)
    said = [f"no parameter {name}" for name in gone] + [f"a new parameter {name}" for name in added]
    return " and ".join(said) or "other parameters"


def _names(schema: Mapping[str, Any]) -> set[str]:
    properties = schema.get("properties")
    return set(properties) if isinstance(properties, Mapping) else set()
