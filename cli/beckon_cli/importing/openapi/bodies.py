"""Arguments for request bodies, and the places of all arguments in a rule."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from beckon_cli.importing.openapi.operations import Operation
from beckon_cli.importing.openapi.references import Node
from beckon_cli.importing.openapi.schemas import FILE
from beckon_cli.importing.openapi.words import MAX_PARAMETER, argument_name, to_plain_text
from beckon_contract.schema.keywords import Schema, stated_types


@dataclass(slots=True)
class FlatRequest:
    """A request as one flat object, while it is being put together.

    `path` has the value of each of the path's placeholders, `url_path` is the path with them filled.
    `properties`, `required` and `alternatives` (an `anyOf` beside them) describe the arguments; the other
    fields are those of the adapter's rule, with `{argument}` where an argument goes. `notes` say what was
    left out or made simpler.
    """

    url_path: str = ""
    properties: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    alternatives: list[Any] = field(default_factory=list)
    path: dict[str, str] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, str] = field(default_factory=dict)
    body: Any = None
    body_type: str = ""
    encoding: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def take_argument(self, wanted: str, place: str, schema: Any, *, required: bool) -> str:
        """Add an argument and return its name.

        It is the wanted name; if that is taken, its place is appended, and a number if needed.
        """
        name = wanted if wanted not in self.properties else f"{wanted}_{place}"
        number = 1
        while name in self.properties:
            number += 1
            name = f"{wanted}_{place}_{number}"
        self.properties[name] = schema
        if required:
            self.required.append(name)
        return name


def constant_of(schema: Any) -> Any:
    """Return the only value allowed by a schema.

    Returns `None` if it allows several, and if the only one is null.
    """
    if not isinstance(schema, Mapping):
        return None
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return values[0] if isinstance(values, list) and len(values) == 1 else None


def to_literal(value: Any) -> Any:
    """Return a value as a rule writes it, with the braces of its texts doubled."""
    if isinstance(value, str):
        return value.replace("{", "{{").replace("}", "}}")
    if isinstance(value, Mapping):
        return {name: to_literal(inner) for name, inner in value.items()}
    return [to_literal(inner) for inner in value] if isinstance(value, list) else value


JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_ONLY_REQUIRED = frozenset({"required", "title", "description", "type"})


@dataclass(frozen=True, slots=True)
class Media:
    """The media type to send, its schema and its fields' encodings."""

    kind: str
    schema: Node
    required: bool
    description: str = ""
    encodings: Mapping[str, Any] = field(default_factory=dict)
    in_query: bool = False


def choose_media(operation: Operation) -> Media | None:
    """Return the media type to send, or `None` without a body.

    It is the one of the body's media types that models write best.
    """
    body = operation.body
    if body is None or not body.schemas:
        return None
    names = sorted(
        body.schemas, key=lambda name: (_rank_of(_media_kind(name)), list(body.schemas).index(name))
    )
    name, kind = names[0], _media_kind(names[0])
    schema = body.schemas[name]
    text = not _is_structured(kind)
    if text:
        kind = kind if "*" not in kind else "application/octet-stream"
        default = {"type": "string"} if kind.startswith("text/") or kind.endswith("xml") else dict(FILE)
        schema = Node(default, schema.resolver)
    return Media(
        kind,
        schema,
        body.required or operation.method in ("post", "put", "patch"),
        body.description,
        body.encodings.get(name, {}),
        in_query=operation.method in ("get", "head"),
    )


def flatten_body(flat: FlatRequest, media: Media, schema: Any, shape: Schema) -> None:
    """Make the fields of an object arguments, and anything else the one argument `body`."""
    if not media.in_query:
        flat.body_type = media.kind
    if _is_flat(shape) and _is_structured(media.kind):
        _flatten_fields(flat, media, shape)
    elif media.in_query:
        if not _is_empty(shape):
            flat.notes.append("the body is left out: a GET has none, and this one is no form")
    elif not _is_empty(shape):
        description = to_plain_text(media.description, MAX_PARAMETER)
        described = {
            **(schema if isinstance(schema, Mapping) else {}),
            **({"description": description} if description else {}),
        }
        argument = flat.take_argument("body", "content", described, required=media.required)
        flat.body = f"{{{argument}}}"
    elif media.kind == JSON and media.required:
        flat.body = {}


def _flatten_fields(flat: FlatRequest, media: Media, shape: Schema) -> None:
    needed = shape.get("required", [])
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    for name, schema in shape["properties"].items():
        if schema is False:
            continue
        only = constant_of(schema)
        if name in needed and only is not None:
            fields[name] = to_literal(only)
            continue
        is_list = isinstance(schema, Mapping) and stated_types(dict(schema)) == ("array",)
        if media.kind in (FORM, MULTIPART) and name in needed and is_list:
            schema = {"minItems": 1, **schema}  # noqa: PLW2901 of an empty list no field is written
        argument = flat.take_argument(argument_name(name), "body", schema, required=name in needed)
        names[name] = argument
        fields[name] = f"{{{argument}}}"
    if media.in_query:
        # What a browser sends of a form by GET is its query.
        flat.notes.append("a GET has no body: its fields go into the query")
        flat.query |= {
            name: value if isinstance(value, str) else str(value) for name, value in fields.items()
        }
        return
    flat.body = fields
    flat.encoding = dict(_field_encodings(media, fields))
    flat.alternatives = _required_alternatives(shape, names)
    if isinstance(shape.get("additionalProperties"), Mapping):
        flat.notes.append("fields of the body beside those that are named are left out")


def _required_alternatives(shape: Schema, names: Mapping[str, str]) -> list[Any]:
    """Return the `anyOf` of fields required together.

    The fields have the names of their arguments. It is empty if a required field is no argument.
    """
    alternatives = []
    for branch in shape.get("anyOf") or shape.get("oneOf") or ():
        needed = branch.get("required", [])
        if any(name not in names for name in needed):
            return []
        alternatives.append({"required": [names[name] for name in needed]})
    return alternatives


def _field_encodings(media: Media, fields: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the form fields with an unusual encoding."""
    encodings: list[tuple[str, dict[str, Any]]] = []
    for name, encoding in media.encodings.items() if media.kind in (FORM, MULTIPART) else ():
        if name not in fields or not isinstance(encoding, Mapping) or encoding.get("style") not in _STYLES:
            continue
        style, explode = encoding["style"], encoding.get("explode")
        if style == "deepObject":
            encodings.append((name, {"style": style}))
        elif explode is False or (style != "form" and explode is not True):
            encodings.append((name, {"style": style, "explode": False}))
    return encodings


def _is_flat(shape: Schema) -> bool:
    """Return True if a body is an object with known fields.

    It may not have different shapes to choose from.
    """
    branches = [branch for key in ("anyOf", "oneOf") for branch in shape.get(key) or ()]
    plainly = all(isinstance(branch, Mapping) and branch.keys() <= _ONLY_REQUIRED for branch in branches)
    kinds = stated_types(shape)
    return bool(shape.get("properties")) and "array" not in kinds and "string" not in kinds and plainly


def _is_empty(shape: Schema) -> bool:
    """Return True if a body is an object without any field."""
    return stated_types(shape) == ("object",) and not shape.keys() - {"type", "properties", "description"}


def _is_structured(kind: str) -> bool:
    return kind == JSON or kind.endswith("+json") or kind in (FORM, MULTIPART)


def _media_kind(name: str) -> str:
    """Return a media type without its parameters. A wildcard, `text/json` and an empty type count as JSON."""
    kind = name.partition(";")[0].strip().lower()
    return JSON if kind in ("*/*", "application/*", "text/json", "") else kind


def _rank_of(kind: str) -> int:
    if kind == JSON:
        return 0
    if kind.endswith("+json"):
        return 1
    return {FORM: 2, MULTIPART: 3, "text/plain": 4}.get(kind, 5)
