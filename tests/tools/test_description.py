"""What a model reads of a tool: from annotations, their notes and the docstring in any usual form."""

from collections.abc import Callable
from typing import Annotated, TypedDict

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc

from beckon_tools import Later, Media, tool
from beckon_tools.declaration import AnyTool


class Order(BaseModel):
    number: int
    state: str = Field(description="packed or sent")


class Place(TypedDict):
    city: str


def google(number: int, deep: bool = False) -> str:
    """Tell where an order is,
    and when it comes.

    More than the model needs.

    Args:
        number: The number of the order, as
            it is on the receipt.
        deep (bool, optional): Look into the archive.

    Returns:
        Where it is.

    Raises:
        ToolError: There is no such order.
    """
    return f"{number}{deep}"


def numpy(number: int, deep: bool = False) -> str:
    """Tell where an order is, and when it comes.

    Parameters
    ----------
    number : int
        The number of the order, as it is on the receipt.
    deep
        Look into the archive.

    Returns
    -------
    str
        Where it is.
    """
    return f"{number}{deep}"


def sphinx(number: int, deep: bool = False) -> str:
    """Tell where an order is, and when it comes.

    :param number: The number of the order, as it is on the receipt.
    :param deep: Look into the archive.
    :returns: Where it is.
    """
    return f"{number}{deep}"


def annotated(
    number: Annotated[int, "The number of the order, as it is on the receipt."],
    deep: Annotated[bool, Doc("Look into the archive.")] = False,
) -> Annotated[str, "Where it is."]:
    """Tell where an order is, and when it comes."""
    return f"{number}{deep}"


def properties(declared: AnyTool) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = declared.signature.schema["properties"]
    return found


@pytest.mark.parametrize("function", [google, numpy, sphinx, annotated])
def test_description_arguments_and_result_are_read_from_any_form(function: Callable[..., str]) -> None:
    declared = tool(type="order.status")(function)

    assert declared.description == "Tell where an order is, and when it comes. Returns: Where it is."
    assert properties(declared) == {
        "number": {"type": "integer", "description": "The number of the order, as it is on the receipt."},
        "deep": {"type": "boolean", "default": False, "description": "Look into the archive."},
    }


def both(number: Annotated[int, Field(description="The note", ge=1)]) -> None:
    """Look at both.

    Args:
        number: The docstring
        other: No parameter at all
    """


def test_a_note_at_the_parameter_goes_before_the_docstring() -> None:
    expected = {"number": {"type": "integer", "description": "The note", "minimum": 1}}
    assert properties(tool(type="both")(both)) == expected


def model() -> Order:
    """Look."""
    return Order(number=1, state="sent")


async def several() -> list[Order]:
    """Look."""
    return []


def typed() -> Place | None:
    """Look."""


def media() -> Media:
    """Look."""
    return Media("audio/wav", b"")


def later() -> Later:
    """Look."""
    return Later()


def plain() -> dict[str, int]:
    """Look."""
    return {}


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (model, " Returns: number, state (packed or sent)"),
        (several, " Returns: a list of: number, state (packed or sent)"),
        (typed, ""),
        (media, ""),
        (later, ""),
        (plain, ""),
    ],
)
def test_the_fields_of_a_model_that_is_returned_are_reported(
    function: Callable[..., object], result: str
) -> None:
    assert tool(type="look")(function).description == f"Look.{result}"


def test_a_description_that_is_given_is_taken_as_it_is() -> None:
    assert tool(type="look", description="See.")(model).description == "See."


def test_a_long_text_about_the_result_is_cut() -> None:
    def long() -> str:
        return ""

    long.__doc__ = "Look.\n\nReturns:\n    " + "much " * 500
    assert len(tool(type="look")(long).description) < 450
