"""The parameters of a function and its description, for a model.

The JSON Schema of the parameters comes from the annotations, and arguments are read by it. The
description comes from the docstring.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import docstring_parser
from cloudevents.core.v1.event import CloudEvent as PublicEvent
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from typing_extensions import Doc

from beckon_contract.jsontext import NotJsonError, dumps, loads
from beckon_contract.schema.parameters import SchemaError, normalise_result
from beckon_tools.answers import Media, Ticket
from beckon_tools.errors import DeclarationError
from beckon_tools.outcomes.record import AsyncCallRecord, CallRecord
from beckon_tools.person import Person
from beckon_tools.progress import Progress


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


def read_result_schema(function: Callable[..., object]) -> Mapping[str, Any] | None:
    """Return the JSON Schema of a function's results from its return annotation, or `None`.

    It is `None` for a result that needs none, such as a plain text or `Media`, and for one that JSON Schema
    cannot describe. Names are those of the fields: results are written without aliases.
    """
    annotation = get_type_hints(function, include_extras=True).get("return", object)
    plain = get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation
    members = get_args(plain) if get_origin(plain) in (Union, UnionType) else (plain,)
    if Media in members or bytes in members:
        return None
    try:
        adapter = TypeAdapter(annotation)
        schema, aliased = (
            adapter.json_schema(by_alias=by_alias, schema_generator=_PlainSchema, mode="serialization")
            for by_alias in (False, True)
        )
        normalise_result(schema)
    except (PydanticUserError, SchemaError):
        return None
    keywords = {keyword: value for keyword, value in schema.items() if keyword != "description"}
    # With aliases, the configuration of a model decides which name is written.
    return None if schema != aliased or keywords in _NEEDS_NO_SCHEMA else schema


# The items of a list of anything may be `Media`.
_NEEDS_NO_SCHEMA: tuple[Mapping[str, Any], ...] = (
    {},
    {"type": "string"},
    {"type": "null"},
    {"type": "array", "items": {}},
)


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


_PREFIX = "p_"  # keeps parameters called `schema` or `copy` clear of pydantic's own methods
_SPECIAL: Mapping[type, str] = {
    PublicEvent: "the call event",
    Ticket: "the ticket of the call",
    Progress: "the progress of the call",
    Person: "the person behind the call",
    CallRecord: "the record of the call",
    AsyncCallRecord: "the record of the call",
}
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class InvalidArguments(ValueError):
    """The arguments do not fit the parameters.

    `problems` has the place and the reason of each error, never the values.
    """

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a tool; `schema` is for the model.

    The fields `*_parameter` name the parameters that no caller sets.
    """

    model: type[BaseModel]
    schema: Mapping[str, Any]
    event_parameter: str | None
    ticket_parameter: str | None = None
    progress_parameter: str | None = None
    person_parameter: str | None = None
    record_parameter: tuple[str, type[CallRecord | AsyncCallRecord]] | None = None

    def read(self, data: bytes | None) -> dict[str, object]:
        """Read the JSON data of a call as keyword arguments; raise `InvalidArguments`.

        Strict, as JSON Schema is: the text "5" is no integer. No data means no arguments.
        """
        try:
            values = self.model.model_validate_json(_with_integers(data or b"{}"), strict=True)
        except NotJsonError as error:
            raise InvalidArguments((f"the arguments are no JSON: {error}",)) from None
        except ValidationError as error:
            raise InvalidArguments(tuple(self._describe_problem(item) for item in error.errors())) from None
        return {name.removeprefix(_PREFIX): getattr(values, name) for name in type(values).model_fields}

    def _describe_problem(self, error: Mapping[str, Any]) -> str:
        """Return an argument error for the model, with the cure. The model may then try again."""
        where = ".".join(str(part) for part in error["loc"]) or "arguments"
        if error["type"] in ("value_error", "assertion_error"):  # a validator's own words
            return f"{where}: {error['ctx']['error']}"
        if error["type"] != "extra_forbidden":
            return f"{where}: {error['msg']}"
        known = ", ".join(self.schema["properties"]) if len(error["loc"]) == 1 else ""
        return f"{where}: unknown parameter; leave it out" + (f" (there are: {known})" if known else "")


def read_signature(function: Callable[..., object]) -> Signature:
    """Read the signature of a function, async or plain; raise `DeclarationError` with the cure."""
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise DeclarationError(f"{function.__qualname__} yields; a tool returns its whole result at once")
    described = read_docstring(function).arguments
    hints = _type_hints(function)
    fields: dict[str, Any] = {}
    special: dict[type, str] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in _BY_NAME:
            raise DeclarationError(
                f"the parameter {parameter} of {function.__qualname__} has no name of its own"
            )
        if name not in hints:
            raise DeclarationError(
                f"the parameter {name!r} of {function.__qualname__} has no type; annotate it"
            )
        kind = _special_type(hints[name])
        if kind is not None:
            if kind in special:
                raise DeclarationError(f"{function.__qualname__} takes {_SPECIAL[kind]} twice")
            special[kind] = name
            continue
        default = ... if parameter.default is inspect.Parameter.empty else parameter.default
        annotation = with_note(hints[name], described.get(name, ""))
        fields[_PREFIX + name] = (annotation, Field(default, alias=name))
    built = _build_signature(function, fields)
    if Progress in special and not inspect.iscoroutinefunction(function):
        raise DeclarationError(f"{function.__qualname__} reports progress; write it as `async def`")
    return replace(
        built,
        event_parameter=special.get(PublicEvent),
        ticket_parameter=special.get(Ticket),
        progress_parameter=special.get(Progress),
        person_parameter=special.get(Person),
        record_parameter=next(
            ((special[kind], kind) for kind in (CallRecord, AsyncCallRecord) if kind in special), None
        ),
    )


def _type_hints(function: Callable[..., object]) -> dict[str, object]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise DeclarationError(f"an annotation of {function.__qualname__} cannot be read: {error}") from None


def _special_type(annotation: object) -> type | None:
    """Return the special type of a parameter, or `None`. A special parameter is not set by callers."""
    if get_origin(annotation) is Annotated:
        return _special_type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        members = (_special_type(member) for member in get_args(annotation) if member is not NoneType)
        return next((special for special in members if special is not None), None)
    if not isinstance(annotation, type):
        return None
    return next((kind for kind in _SPECIAL if issubclass(annotation, kind)), None)


def _build_signature(function: Callable[..., object], fields: dict[str, Any]) -> Signature:
    try:
        model: type[BaseModel] = create_model(
            "Arguments", __config__=ConfigDict(extra="forbid", hide_input_in_errors=True), **fields
        )
        schema = model.model_json_schema(schema_generator=_PlainSchema)
    except PydanticUserError as error:
        first_line = str(error).splitlines()[0]
        raise DeclarationError(
            f"the parameters of {function.__qualname__} have no JSON Schema: {first_line}"
        ) from None
    order = ("type", "properties", "required", "additionalProperties", "$defs")
    ordered = {"properties": {}, **{key: schema[key] for key in order if key in schema}}
    return Signature(model, {"type": ordered.pop("type"), **ordered}, None)


class _PlainSchema(GenerateJsonSchema):
    """JSON Schema without generated titles. A default that is not JSON is an error."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value  # in the order of the signature

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        raise PydanticUserError(detail, code=None)


def _with_integers(data: bytes) -> bytes:
    """Write whole numbers without a fraction.

    3.0 is an integer to JSON Schema, not to pydantic. Raises `NotJsonError` for NaN and infinities, which
    pydantic would take.
    """
    if not any(mark in data for mark in (b".", b"e", b"E", b"N", b"I")):
        return data
    try:
        return dumps(_to_whole_number(loads(data)))
    except NotJsonError as error:
        if "NaN" in str(error) or "Infinity" in str(error):
            raise
        return data  # which pydantic refuses, and says why
    except RecursionError:
        return data


def _to_whole_number(value: object) -> object:
    if isinstance(value, float) and math.isfinite(value) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _to_whole_number(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_whole_number(item) for item in value]
    return value
