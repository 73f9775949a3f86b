"""The description of a tool for a model, from docstrings and annotations."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import docstring_parser
from pydantic import Field, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from typing_extensions import Doc

from beckon_tools.results import Media


@dataclass(frozen=True, slots=True)
class DocstringParts:
    """The parts of a docstring, each on one line; empty if missing."""

    description: str
    arguments: Mapping[str, str]
    result: str


def read_docstring(function: Callable[..., object]) -> DocstringParts:
    """Read a function's docstring: of its description, the first paragraph."""
    text = inspect.getdoc(function) or ""
    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return DocstringParts(_first_paragraph(text), {}, "")
    arguments = {one.arg_name: _one_line(one.description) for one in parsed.params if one.description}
    result = _one_line(parsed.returns.description) if parsed.returns else ""
    return DocstringParts(_first_paragraph(parsed.description or ""), arguments, result)


def _first_paragraph(text: str) -> str:
    return _one_line(text.partition("\n\n")[0])


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def note_of(annotation: object) -> str:
    """Return the last description in an annotation, empty without one."""
    if get_origin(annotation) is not Annotated:
        return ""
    notes = (_read_note(note) for note in get_args(annotation)[1:])
    return next((note for note in reversed([*notes]) if note), "")


def with_note(annotation: object, otherwise: str) -> object:
    """Return the annotation with its description for pydantic.

    `otherwise` is the description if it has none of its own.
    """
    note = note_of(annotation) or otherwise
    return Annotated[annotation, Field(description=note)] if note else annotation


def _read_note(note: object) -> str:
    if isinstance(note, FieldInfo):
        return note.description or ""
    if isinstance(note, Doc):
        return note.documentation
    return note if isinstance(note, str) else ""


_LONGEST = 400  # characters about the result: a model pays for each declaration with every turn


def describe_function(function: Callable[..., object]) -> str:
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
    return f"{parts.description} Returns: {_cut_text(result)}"


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
    return _describe_fields(schema)


def _describe_fields(schema: Mapping[str, Any]) -> str:
    """Return the fields of an object, or of a list's objects, as `name (description)`."""
    items = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict):
        inner = _describe_fields({**items, "$defs": schema.get("$defs", {})})
        return f"a list of: {inner}" if inner else ""
    if reference := schema.get("$ref"):
        return _describe_fields({**schema["$defs"][reference.rpartition("/")[2]], "$defs": schema["$defs"]})
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        return ""
    return ", ".join(name + _describe_field(field) for name, field in fields.items())


def _describe_field(field: Mapping[str, Any]) -> str:
    return f" ({field['description']})" if field.get("description") else ""


def _cut_text(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1].rstrip() + "…"
