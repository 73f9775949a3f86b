"""A tool that puts two forms to a person before it has its effect."""

from typing import Annotated

from pydantic import BaseModel, Field

from beckon_tools import Person, tool

ordered: list[str] = []
"""What was ordered, the effect of the tool."""


class Size(BaseModel):
    """The first form."""

    size: Annotated[int, Field(ge=1, le=99)]


class Confirmation(BaseModel):
    """The second form."""

    really: bool


@tool(type="shop.order", name="order")
def order_thing(name: str, person: Person) -> str:
    """Order a thing."""
    size = person.fill_form(f"Which size of {name}?", Size).size
    if not person.fill_form(f"Order {name} in size {size}?", Confirmation).really:
        return "nothing was ordered"
    ordered.append(f"{name} {size}")
    return f"ordered {name} in size {size}"
