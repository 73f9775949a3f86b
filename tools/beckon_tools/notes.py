"""What an annotation says beside its type: a text, pydantic's `Field`, or PEP 727's `Doc`."""

from typing import Annotated, get_args, get_origin

from pydantic import Field
from pydantic.fields import FieldInfo
from typing_extensions import Doc


def note_of(annotation: object) -> str:
    """Return the description that an annotation gives; the last one counts, empty where there is none."""
    if get_origin(annotation) is not Annotated:
        return ""
    notes = (_note(note) for note in get_args(annotation)[1:])
    return next((note for note in reversed([*notes]) if note), "")


def with_note(annotation: object, otherwise: str) -> object:
    """Return the annotation with its description where pydantic looks; `otherwise` where it gives none."""
    note = note_of(annotation) or otherwise
    return Annotated[annotation, Field(description=note)] if note else annotation


def _note(note: object) -> str:
    if isinstance(note, FieldInfo):
        return note.description or ""
    if isinstance(note, Doc):
        return note.documentation
    return note if isinstance(note, str) else ""
