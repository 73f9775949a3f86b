from collections.abc import AsyncIterator, Callable
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal

import pytest
from cloudevents.core.v1.event import CloudEvent as PublicEvent
from pydantic import AfterValidator, BaseModel, Field

from beckon_tools import DeclarationError, Later, Media
from beckon_tools.signature import InvalidArguments, read_result_schema, read_signature


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


async def nothing() -> None: ...
async def plain(text: str, count: int, share: float, yes: bool) -> None: ...
async def described(city: Annotated[str, Field(description="A city", min_length=2)]) -> None: ...
async def chosen(unit: Literal["c", "f"] = "c", colour: Colour = Colour.RED) -> None: ...
async def optional(limit: int | None = None) -> None: ...
async def nested(where: Point, tags: list[str]) -> None: ...
async def awkward(schema: str, copy: int, model_config: str, json: bool, self_: str = "") -> None: ...
async def dated(day: date) -> None: ...


def schema_of(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    needs = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needs, "additionalProperties": False}


TABLE: list[tuple[Callable[..., object], dict[str, Any]]] = [
    (nothing, schema_of({}, [])),
    (
        plain,
        schema_of(
            {
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "share": {"type": "number"},
                "yes": {"type": "boolean"},
            },
            ["text", "count", "share", "yes"],
        ),
    ),
    (described, schema_of({"city": {"type": "string", "description": "A city", "minLength": 2}}, ["city"])),
    (
        chosen,
        {
            **schema_of(
                {
                    "unit": {"type": "string", "enum": ["c", "f"], "default": "c"},
                    "colour": {"$ref": "#/$defs/Colour", "default": "red"},
                },
                [],
            ),
            "$defs": {"Colour": {"type": "string", "enum": ["red", "blue"], "title": "Colour"}},
        },
    ),
    (
        optional,
        schema_of({"limit": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}}, []),
    ),
    (
        nested,
        {
            **schema_of(
                {"where": {"$ref": "#/$defs/Point"}, "tags": {"type": "array", "items": {"type": "string"}}},
                ["where", "tags"],
            ),
            "$defs": {
                "Point": {
                    "type": "object",
                    "title": "Point",
                    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
                    "required": ["x"],
                }
            },
        },
    ),
    (
        awkward,
        schema_of(
            {
                "schema": {"type": "string"},
                "copy": {"type": "integer"},
                "model_config": {"type": "string"},
                "json": {"type": "boolean"},
                "self_": {"type": "string", "default": ""},
            },
            ["schema", "copy", "model_config", "json"],
        ),
    ),
    (dated, schema_of({"day": {"type": "string", "format": "date"}}, ["day"])),
]


@pytest.mark.parametrize(("function", "schema"), TABLE, ids=[function.__name__ for function, _ in TABLE])
def test_the_schema_follows_the_signature(function: Callable[..., object], schema: dict[str, Any]) -> None:
    assert read_signature(function).schema == schema


def plain_values(text: str, count: int, share: float, yes: bool) -> dict[str, object]:
    return {"text": text, "count": count, "share": share, "yes": yes}


READ: list[tuple[Callable[..., object], bytes | None, dict[str, object]]] = [
    (nothing, None, {}),
    (nothing, b"{}", {}),
    (plain, b'{"text":"a","count":2,"share":1,"yes":true}', plain_values("a", 2, 1.0, True)),
    (plain, b'{"text":"a","count":2.0,"share":1.5,"yes":false}', plain_values("a", 2, 1.5, False)),
    (plain, b'{"text":"1.0","count":2e0,"share":2e0,"yes":false}', plain_values("1.0", 2, 2.0, False)),
    (chosen, b'{"unit":"f"}', {"unit": "f", "colour": Colour.RED}),
    (chosen, b'{"colour":"blue"}', {"unit": "c", "colour": Colour.BLUE}),
    (nested, b'{"where":{"x":1},"tags":["a"]}', {"where": Point(x=1), "tags": ["a"]}),
    (dated, b'{"day":"2026-11-20"}', {"day": date(2026, 11, 20)}),
    (
        awkward,
        b'{"schema":"a","copy":1,"model_config":"b","json":true}',
        {"schema": "a", "copy": 1, "model_config": "b", "json": True, "self_": ""},
    ),
]


@pytest.mark.parametrize(("function", "data", "arguments"), READ)
def test_arguments_are_read_as_the_types_that_are_annotated(
    function: Callable[..., object], data: bytes | None, arguments: dict[str, object]
) -> None:
    assert read_signature(function).read(data) == arguments


REFUSED: list[tuple[Callable[..., object], bytes, str]] = [
    (plain, b'{"text":"a","count":"2","share":1,"yes":true}', "count: "),
    (plain, b'{"text":"a","count":2.5,"share":1,"yes":true}', "count: "),
    (plain, b'{"text":1,"count":2,"share":1,"yes":true}', "text: "),
    (plain, b'{"text":"a","count":true,"share":1,"yes":true}', "count: "),
    (described, b"{}", "city: Field required"),
    (described, b'{"city":"x"}', "city: "),
    (
        described,
        b'{"city":"Rome","country":"it"}',
        "country: unknown parameter; leave it out (there are: city)",
    ),
    (nested, b'{"where":{"x":"1"},"tags":[]}', "where.x: "),
    (nested, b'{"where":{"x":1},"tags":[1]}', "tags.0: "),
    (chosen, b'{"unit":"kelvin"}', "unit: "),
    (nothing, b"[]", "arguments: "),
    (nothing, b"{", "arguments: "),
    (nothing, b"\xff1.0", "arguments: "),
]


@pytest.mark.parametrize(("function", "data", "beginning"), REFUSED)
def test_arguments_that_do_not_fit_are_reported_by_name(
    function: Callable[..., object], data: bytes, beginning: str
) -> None:
    with pytest.raises(InvalidArguments) as refused:
        read_signature(function).read(data)
    assert refused.value.problems[0].startswith(beginning)


def even(number: int) -> int:
    assert number % 2 == 0, "write an even number"
    return number


async def validated(number: Annotated[int, AfterValidator(even)]) -> None: ...


def test_what_a_validator_says_is_reported_in_its_own_words() -> None:
    with pytest.raises(InvalidArguments, match="number: write an even number"):
        read_signature(validated).read(b'{"number":3}')


async def with_event(text: str, event: PublicEvent) -> None: ...
async def with_optional_event(event: PublicEvent | None = None) -> None: ...
async def with_annotated_event(event: Annotated[PublicEvent, "the call"]) -> None: ...


@pytest.mark.parametrize("function", [with_event, with_optional_event, with_annotated_event])
def test_a_parameter_for_the_event_is_no_parameter_of_the_tool(function: Callable[..., object]) -> None:
    signature = read_signature(function)
    assert signature.event_parameter == "event"
    assert "event" not in signature.schema["properties"]


async def yielding(text: str) -> AsyncIterator[str]:
    yield text


async def unannotated(text) -> None: ...  # type: ignore[no-untyped-def]  # the mistake under test
async def variadic(*texts: str) -> None: ...
async def keywords(**texts: str) -> None: ...
async def two_events(first: PublicEvent, second: PublicEvent) -> None: ...
async def no_schema(thing: object = object()) -> None: ...
async def callback(then: Callable[[], None]) -> None: ...
async def unknown_name(thing: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - the mistake under test


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        (yielding, "whole result"),
        (unannotated, "annotate it"),
        (variadic, "no name of its own"),
        (keywords, "no name of its own"),
        (two_events, "twice"),
        (no_schema, "JSON"),
        (callback, "JSON Schema"),
        (unknown_name, "Missing"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_refused_with_the_cure(
    function: Callable[..., object], cure: str
) -> None:
    with pytest.raises(DeclarationError, match=cure):
        read_signature(function)


class Order(BaseModel):
    number: int
    state: str = "new"


class Aliased(BaseModel):
    number: int = Field(serialization_alias="Number")


ORDER = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "state": {"type": "string", "default": "new"}},
    "required": ["number"],
    "title": "Order",
}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (dict[str, object], {"type": "object", "additionalProperties": True}),
        (Annotated[Order, "The order"], ORDER),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        *((kind, None) for kind in (str, None, object, bytes, list[Any], Media | str, Later, Aliased)),
    ],
)
def test_the_return_annotation_is_the_schema_of_the_results(
    annotation: object, schema: dict[str, Any] | None
) -> None:
    async def function() -> object: ...

    function.__annotations__["return"] = annotation
    assert read_result_schema(function) == schema


def test_a_function_without_a_return_annotation_has_no_schema_of_results() -> None:
    assert read_result_schema(lambda: 1) is None
