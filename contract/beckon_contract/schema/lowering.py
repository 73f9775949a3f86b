"""The parameters of a tool as sent to a provider.

They are the original parameters, lowered to the rules of that provider.

Lowering never fails, keeps the names of the parameters, and only loosens: what the original accepts, the
lowered schema accepts. Exceptions, each for want of a word in the provider's language: strict mode closes
objects and makes optional properties nullable; Gemini takes a value of undeclared type for a scalar; where
alternatives are absorbed into one object, a property has the type of those alternatives that describe it.
Arguments are checked against the original.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from beckon_contract.schema.gemini import lower_for_gemini
from beckon_contract.schema.keywords import Schema, rebuild
from beckon_contract.schema.llama_cpp import lower_for_llama_cpp
from beckon_contract.schema.openai import lower_for_openai, lower_for_openai_strict

MAX_CHARACTERS = 32 * 1024
"""What one tool may take of a prompt, as JSON; beyond it descriptions are shortened, then left out."""

_DESCRIPTION_LENGTHS = (1024, 256, 80)


class Profile(StrEnum):
    """The provider rules a schema is lowered to."""

    OPENAI = "openai"
    OPENAI_STRICT = "openai_strict"
    GEMINI = "gemini"
    LLAMA_CPP = "llama_cpp"


def lower(schema: Mapping[str, Any], profile: Profile | str) -> dict[str, Any]:
    """Return normalised parameters as this provider accepts them.

    With `openai_strict`, a schema that strict mode cannot express is lowered as for `openai`. To know
    whether to send `strict: true`, use `lower_strict`. An unknown profile is a `ValueError`.
    """
    chosen = Profile(profile)
    if chosen is Profile.OPENAI_STRICT:
        return lower_strict(schema) or lower(schema, Profile.OPENAI)
    return _fit(_LOWERINGS[chosen](dict(schema)))


def lower_strict(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return normalised parameters for `strict: true`, or `None`.

    `None` means that strict mode cannot express them.
    """
    lowered = lower_for_openai_strict(dict(schema))
    return None if lowered is None else _fit(lowered)


_LOWERINGS: Mapping[Profile, Callable[[Schema], Schema]] = {
    Profile.OPENAI: lower_for_openai,
    Profile.GEMINI: lower_for_gemini,
    Profile.LLAMA_CPP: lower_for_llama_cpp,
}


def _fit(lowered: Schema) -> Schema:
    for length in _DESCRIPTION_LENGTHS:
        lowered = _shorten(lowered, length)
        if len(json.dumps(lowered)) <= MAX_CHARACTERS:
            return lowered
    return _shorten(lowered, 0)


def _shorten(node: Schema, length: int) -> Schema:
    """Return a schema with descriptions cut to a length, 0 for none."""
    shortened: Schema = {}
    for keyword, value in node.items():
        if keyword != "description":
            shortened[keyword] = rebuild(
                keyword, value, lambda _, child: child if isinstance(child, bool) else _shorten(child, length)
            )
        elif length:
            shortened[keyword] = value if len(value) <= length else value[: length - 1].rstrip() + "…"
    return shortened
