"""The description of a tool for a model: its purpose and its result."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from beckon_tools.docstrings import read_docstring
from beckon_tools.notes import note_of
from beckon_tools.results import Media

_LONGEST = 400  # characters about the result: a model pays for each declaration with every turn


def described(function: Callable[..., object]) -> str:
    """Return a tool's description, empty if its docstring has none.

    The result is described by the docstring, or a note at the return annotation, or the fields of a model
    that is returned. An EventType has no field of its own for that.
    """
    parts = read_docstring(function)
    if not parts.description:
        return ""
    result = parts.result or _of_annotation(function)
    if not result:
        return parts.description
    return f"{parts.description} Returns: {_cut(result)}"


def _of_annotation(function: Callable[..., object]) -> str:
    try:
        annotation = get_type_hints(function, include_extras=True).get("return", inspect.Signature.empty)
        if note := note_of(annotation):
            return note
        if annotation is Media:
            return ""  # its fields are for programs, not for a model
        schema = TypeAdapter(annotation).json_schema(mode="serialization")
    except (NameError, PydanticUserError):
        return ""  # a result that is no JSON schema's, such as the answer of a tool that answers later
    return _fields(schema)


def _fields(schema: Mapping[str, Any]) -> str:
    """Return the fields of an object, or of a list's objects, as `name (description)`."""
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        inner = _fields({**items, "$defs": schema.get("$defs", {})})
        return f"a list of: {inner}" if inner else ""
    if reference := schema.get("$ref"):
        return _fields({**schema["$defs"][reference.rpartition("/")[2]], "$defs": schema["$defs"]})
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return ""
    return ", ".join(name + _said(field) for name, field in fields.items())


def _said(field: Mapping[str, Any]) -> str:
    return f" ({field['description']})" if field.get("description") else ""


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
