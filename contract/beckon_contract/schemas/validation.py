"""A schema compiled once, and problems of values worded for a model."""

import difflib
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Any

import jsonschema_rs

from beckon_contract.schemas.keywords import Schema, stated_types

MAX_ERRORS = 1000
MAX_PROBLEMS = 10
_MAX_VALUE = 60
_MAX_PROBLEM = 300

Kind = jsonschema_rs.ValidationErrorKind


class Validator:
    """A schema of 2020-12, compiled; `format` is an annotation, as the specification has it by default.

    A service may well take what a strict reading of a format refuses (a time without an offset, a local
    address); it answers for itself. Nothing is fetched.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Compile a schema; raise `ValueError` if it is invalid.

        Normalised parameters never are.
        """
        self.schema: Schema = dict(schema)
        self._compiled = jsonschema_rs.Draft202012Validator(self.schema, validate_formats=False, offline=True)

    def is_valid(self, value: object) -> bool:
        """Return True if the value satisfies the schema."""
        return self._compiled.is_valid(value)

    def errors(self, value: object) -> list[jsonschema_rs.ValidationError]:
        """Return the validator's own errors, at most `MAX_ERRORS`."""
        return list(itertools.islice(self._compiled.iter_errors(value), MAX_ERRORS))

    def problems(self, value: object) -> tuple[str, ...]:
        """Return the problems of a value in words, empty for a valid one."""
        found = list(dict.fromkeys(self._describe(error) for error in self.errors(value)))
        if len(found) > MAX_PROBLEMS:
            found[MAX_PROBLEMS:] = [f"and {len(found) - MAX_PROBLEMS} more"]
        return tuple(found)

    def outer_schema(self, error: jsonschema_rs.ValidationError) -> Schema:
        """Return the schema with the keyword of an error.

        The keyword refused the value. The result is empty if the schema cannot be found.
        """
        node: Any = self.schema
        for token in error.schema_path[:-1]:
            try:
                node = node[token]
            except (KeyError, IndexError, TypeError):
                return {}
        return node if isinstance(node, dict) else {}

    def _describe(self, error: jsonschema_rs.ValidationError) -> str:
        said = self._explain(error)
        return said if len(said) <= _MAX_PROBLEM else said[: _MAX_PROBLEM - 1] + "…"

    def _explain(self, error: jsonschema_rs.ValidationError) -> str:
        place = _place(error.instance_path)
        got = shorten(error.instance)
        match error.kind:
            case Kind.Required(property=name):
                return self._missing(_place([*error.instance_path, name]), name, self.outer_schema(error))
            case Kind.Type(types=types):
                return f"{place} must be {' or '.join(types)}, got {got}"
            case Kind.Enum(options=options):
                return f"{place} must be one of {_listed(options)}, got {got}"
            case Kind.AdditionalProperties(unexpected=names) | Kind.UnevaluatedProperties(unexpected=names):
                return self._unexpected(place, names, self.outer_schema(error))
            case Kind.AnyOf(context=branches) | Kind.OneOfNotValid(context=branches):
                reasons = dict.fromkeys(self._explain(branch[0]) for branch in branches[:4] if branch)
                return f"{place} fits none of its alternatives: {'; or '.join(reasons)}"
        return f"{place}: {shorten_text(error.message)}, got {got}"

    def _missing(self, place: str, name: str, outer: Schema) -> str:
        wanted = outer.get("properties", {}).get(name)
        if not isinstance(wanted, dict):
            return f"{place} is required and missing"
        types = " or ".join(stated_types(wanted))
        values = f"one of {_listed(wanted['enum'])}" if isinstance(wanted.get("enum"), list) else ""
        hint = ": ".join(text for text in (values or types, str(wanted.get("description", ""))) if text)
        return f"{place} is required and missing{f' ({shorten_text(hint)})' if hint else ''}"

    def _unexpected(self, place: str, names: Iterable[str], outer: Schema) -> str:
        known = list(outer.get("properties", ()))
        near = [match for name in names for match in similar(name, known)]
        hint = f"; did you mean {_listed(near)}?" if near else f"; there is {_listed(known) or 'nothing'}"
        return f"there is no {_listed(names)} in {place}{hint}"


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the known name probably meant by a misspelt one, if any."""
    folded = {candidate.casefold(): candidate for candidate in known}
    return [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.75)]


def shorten(value: object) -> str:
    """Return a value as short JSON.

    Long text is cut; objects and arrays with content are only named.
    """
    if isinstance(value, dict | list) and value:
        return "an object" if isinstance(value, dict) else f"an array of {len(value)}"
    return shorten_text(json.dumps(value, ensure_ascii=False), _MAX_VALUE)


def shorten_text(text: str, length: int = 160) -> str:
    """Return a text, cut to at most `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _place(path: Iterable[str | int]) -> str:
    shown = "".join(f"[{token}]" if isinstance(token, int) else f".{token}" for token in path)
    return f"`{shorten_text(shown.removeprefix('.'))}`" if shown else "the arguments"


def _listed(values: Iterable[object]) -> str:
    shown = [shorten(value) for value in itertools.islice(values, 21)]
    return ", ".join(shown[:20]) + (", …" if len(shown) > 20 else "")
