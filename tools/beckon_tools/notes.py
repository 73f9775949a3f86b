"""The description in an annotation: text, `Field`, or `Doc`.

`Field` is pydantic's, `Doc` is PEP 727's.
"""

from typing import Annotated, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo
from typing_extensions import Doc


def note_of(annotation: object) -> str:
    """Return the last description in an annotation, empty without one."""
    if get_origin(annotation) is not Annotated:
        return ""
    notes = (_note(note) for note in get_args(annotation)[1:])
    return next((note for note in reversed([*notes]) if note), "")


def with_note(annotation: object, otherwise: str) -> object:
    """Return the annotation with its description for pydantic.

    `otherwise` is the description if it has none of its own.
    """
    note = note_of(annotation) or otherwise
    return Annotated[annotation, Field(description=note)] if note else annotation


def _note(note: object) -> str:
    if isinstance(note, FieldInfo):
        return note.description or ""
    if isinstance(note, Doc):
        return note.documentation
    return note if isinstance(note, str) else ""
