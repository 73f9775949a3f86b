"""Tool results as the model sees them: data, bounded, never an instruction of ours."""

from collections.abc import Mapping

from beckon_contract.jsontext import dumps

_BINARY_KEY = "data_base64"


def for_model(result: object, limit: int) -> str:
    """Return a result as the text of a tool message, cut at `limit` characters with a note.

    Base64 data is replaced by its size: no model reads it, and it would fill the context.
    """
    shown = _without_binary(result)
    text = shown if isinstance(shown, str) else dumps(shown).decode()
    if len(text) <= limit:
        return text
    return f"{text[:limit]}\n[cut: the result has {len(text)} characters, the first {limit} are shown]"


def _without_binary(value: object) -> object:
    if isinstance(value, list):
        return [_without_binary(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    shown = {key: _without_binary(item) for key, item in value.items() if key != _BINARY_KEY}
    encoded = value.get(_BINARY_KEY)
    if isinstance(encoded, str):
        shown["note"] = f"{len(encoded) * 3 // 4} bytes of data, left out here"
    return shown
