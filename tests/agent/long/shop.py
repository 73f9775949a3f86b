"""Tools that put forms to a person before they have their effect, one by one or at once."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from beckon_tools import Person, tool

calls: list[str] = []
"""What the tool was called with, each time."""

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
    calls.append(name)
    size = person.fill_form(f"Which size of {name}?", Size).size
    if not person.fill_form(f"Order {name} in size {size}?", Confirmation).really:
        return "nothing was ordered"
    ordered.append(f"{name} {size}")
    return f"ordered {name} in size {size}"


def text_form(message: str, name: str) -> dict[str, Any]:
    """Return the request for one text."""
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


RHYME: dict[str, Any] = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "A rhyme, please"}}],
        "maxTokens": 50,
    },
}


@tool(type="shop.wrap", name="wrap")
def wrap_thing(name: str, person: Person) -> dict[str, Any]:
    """Wrap a thing, with a card."""
    answers = person.request_inputs(
        {
            "paper": text_form(f"Which paper for {name}?", "colour"),
            "card": text_form("Which words?", "words"),
            "rhyme": RHYME,
            "folders": {"method": "roots/list"},
        }
    )
    return {key: {"action": answer.action, "content": answer.content} for key, answer in answers.items()}


@tool(type="shop.rhyme", name="rhyme")
def rhyme(person: Person) -> str:
    """Make a rhyme with the model of the client."""
    (answer,) = person.request_inputs({"rhyme": RHYME}).values()
    return str(answer.content)
