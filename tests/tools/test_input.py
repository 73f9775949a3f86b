"""Tools that request input of a person in the middle of a call."""

from enum import StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from beckon_contract.inputs import Form, InputRequest, InvalidInput, next_call_id
from beckon_tools import Declined, Person, tool
from beckon_tools.testing import Answer, Trial

pytestmark = pytest.mark.asyncio


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Order(BaseModel):
    size: Size
    count: Annotated[int, Field(ge=1, le=5)] = 1


class Confirmation(BaseModel):
    really: bool


class Nested(BaseModel):
    order: Order


@tool(type="shop.order", description="Order a thing.")
def order_thing(name: str, person: Person) -> str:
    order = person.fill_form(f"How many of {name}?", Order)
    confirmed = person.fill_form(f"Order {order.count} {order.size} {name}?", Confirmation)
    return f"{order.count} {order.size} {name}" if confirmed.really else "nothing"


@tool(type="shop.nested", description="Show a form that cannot be shown.")
async def show_nested(person: Person) -> str:
    return str(person.fill_form("What?", Nested))


@tool(type="shop.brave", description="Go on without a person.")
async def go_on(person: Person) -> str:
    try:
        person.fill_form("Sure?", Confirmation)
    except Declined:
        return "went on"
    except Exception:
        return "swallowed the request"
    return "was sure"


HAT = {"name": "hat"}


def form_of(answer: Answer) -> Form:
    assert answer.form is not None
    return answer.form


async def test_a_function_runs_again_with_each_answer() -> None:
    trial = Trial(order_thing)

    first = await trial.call(HAT)
    assert form_of(first).message == "How many of hat?"
    assert form_of(first).schema["properties"]["size"]["enum"] == ["small", "large"]
    assert form_of(first).schema["required"] == ["size"]

    second = await trial.fill_in(first, {"size": "large", "count": 2}, HAT)
    assert form_of(second).message == "Order 2 large hat?"

    assert (await trial.fill_in(second, {"really": True}, HAT)).result == "2 large hat"
    assert trial.runs == 3


async def test_the_model_has_no_parameter_for_the_person() -> None:
    assert list(order_thing.signature.schema["properties"]) == ["name"]


async def test_an_answer_counts_for_no_other_form() -> None:
    trial = Trial(order_thing)
    first = await trial.call(HAT)

    again = await trial.fill_in(first, {"size": "small"}, {"name": "coat"})

    assert form_of(again).message == "How many of coat?"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_decline(action: Literal["decline", "cancel"]) -> None:
    trial, brave = Trial(order_thing), Trial(go_on)
    refused = await trial.fill_in(await trial.call(HAT), arguments=HAT, action=action)

    assert refused.reason == "tool_failed"
    assert "did not fill it in: How many of hat?" in refused.message
    assert (await brave.fill_in(await brave.call(), action="decline")).result == "went on"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "`size` is required and missing"),
        ({"size": "huge"}, "`size` must be one of"),
        ({"size": "small", "count": 9}, "count"),
    ],
)
async def test_content_that_does_not_fit_the_form_is_refused(
    content: dict[str, object], problem: str
) -> None:
    trial = Trial(order_thing)
    first = await trial.call(HAT)

    with pytest.raises(InvalidInput, match=problem):
        await trial.fill_in(first, content, HAT)


async def test_a_form_that_no_client_can_show_is_a_fault_of_the_tool() -> None:
    answer = await Trial(show_nested).call()

    assert answer.reason == "tool_failed"
    assert "the form Nested cannot be shown to a person: the field 'order'" in answer.message


@pytest.mark.parametrize("attribute", ["", "[]", '{"action": "yes"}', '{"action": "accept", "state": "x"}'])
async def test_an_attribute_that_is_no_answer_is_refused(attribute: str) -> None:
    answer = await Trial(order_thing).call(HAT, beckoninput=attribute)

    assert answer.reason == "invalid_arguments"
    assert "answer" in answer.message


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("a text", "must be an object"),
        ({"message": " "}, "must be a text for the person"),
        ({"message": "x" * 2001}, "at most 2000"),
        ({"message": "?", "state": 1}, "'state' must be a text"),
        ({"message": "?", "schema": {"type": "array"}}, "of type object"),
        ({"message": "?", "schema": {"type": "object", "properties": {"a": {"$ref": "#"}}}}, "the field 'a'"),
        ({"message": "?", "schema": {"type": "object", "required": 1}}, "no valid JSON Schema"),
        (
            {
                "message": "?",
                "schema": {"type": "object", "properties": {str(n): {"type": "string"} for n in range(51)}},
            },
            "too large",
        ),
    ],
)
async def test_a_request_that_cannot_be_shown_says_why(document: object, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        InputRequest.from_document(document)


async def test_a_long_answer_is_refused() -> None:
    request = InputRequest.from_document(
        {"message": "?", "schema": {"type": "object", "properties": {"text": {"type": "string"}}}}
    )

    with pytest.raises(InvalidInput, match="too long"):
        request.fill_form({"action": "accept", "content": {"text": "é" * 2000}})


async def test_each_round_of_a_call_has_an_id_of_its_own() -> None:
    assert next_call_id("run.0.1") == "run.0.1~1"
    assert next_call_id("run.0.1~9") == "run.0.1~10"


def text_form(message: str) -> dict[str, object]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


ROOTS = {"method": "roots/list", "params": {}}


@tool(type="shop.card", description="Write a card.")
def write_card(person: Person) -> str:
    answers = person.request_inputs({"to": text_form("To whom?"), "words": text_form("Which words?")})
    again = person.request_input("Send it?", {"type": "object", "properties": {}})
    return f"{again.action}: " + ", ".join(
        str(answer.content or answer.action) for answer in answers.values()
    )


async def test_several_requests_are_answered_at_once() -> None:
    trial = Trial(write_card)

    first = await trial.call()
    second = await trial.fill_in(first, {"text": "Ann"})
    assert (form_of(first).message, form_of(second).message) == ("To whom?", "Which words?")
    assert trial.runs == 1
    third = await trial.fill_in(second, action="decline")
    assert form_of(third).message == "Send it?"
    assert (await trial.fill_in(third, {})).result == "accept: {'text': 'Ann'}, decline"


@pytest.mark.parametrize(
    ("requests", "problem"),
    [
        ({}, "1 to 10 requests"),
        ({str(number): ROOTS for number in range(11)}, "1 to 10 requests"),
        ({"a b": ROOTS}, "'key' must be a name"),
        ({"a": "roots/list"}, "must be an object with 'method' and 'params'"),
        ({"a": {"method": "tools/list"}}, "must be one of elicitation/create, sampling/createMessage"),
        ({"a": {"method": "elicitation/create", "params": {}}}, "must be a text for the person"),
        ({"a": {"method": "sampling/createMessage", "params": {"x": "y" * 17_000}}}, "too large"),
    ],
)
async def test_requests_that_cannot_be_sent_say_why(requests: object, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        InputRequest.from_document({"requests": requests})


async def test_a_person_can_only_decline_what_the_client_has_to_answer() -> None:
    request = InputRequest.from_document({"requests": {"folders": ROOTS}, "state": "s"})

    with pytest.raises(InvalidInput, match="only the program of the client"):
        request.fill_form({"action": "accept", "content": {}})
    declined = request.fill_form({"action": "decline"}).answer
    assert declined is not None
    assert declined.to_document() == {
        "action": "decline",
        "state": "s",
        "answers": {"folders": {"action": "decline"}},
    }


async def test_a_request_comes_back_from_the_store_as_it_was() -> None:
    request = InputRequest.from_document({"requests": {"to": text_form("To whom?"), "folders": ROOTS}})
    part = request.fill_in({"folders": {"action": "accept", "content": {"roots": []}}})

    with pytest.raises(InvalidInput, match="too long"):
        request.fill_in({"folders": {"action": "accept", "content": {"roots": ["x" * 8_000]}}})
    assert InputRequest.from_stored(part.to_document()) == part
    assert part.answer is None
    assert list(part.waiting) == ["to"]
    assert request.limit_to(["sampling/createMessage"]) is None


async def test_a_tool_cannot_answer_its_own_requests() -> None:
    reply = {"requests": {"folders": ROOTS}, "answers": {"folders": {"action": "accept"}}, "parts": "one"}

    request = InputRequest.from_document(reply)

    assert (list(request.waiting), request.answers, request.parts) == (["folders"], {}, 0)
    assert InputRequest.from_document({**reply, "answers": 5}).limit_to(["roots/list"]) is not None
