"""What `find_tools` answers."""

import pytest
from jsonschema import Draft202012Validator

from beckon_agent.tools.bm25 import Index
from beckon_agent.tools.query import FIND_TOOLS, Finder
from beckon_contract.names import RESERVED
from beckon_contract.resources.tools import Tool, declare
from beckon_contract.schema.arguments import InvalidArguments, Validator, read_arguments
from beckon_contract.schema.lowering import Profile
from tests.agent.tools.some_tools import SHOP, a_tool, catalogue


def finder(tools: dict[str, Tool], room: int = 20) -> Finder:
    return Finder(Index(tools), tools, room)


def members_found(answer: dict[str, object], what: str) -> list[str]:
    tools = answer["tools"]
    assert isinstance(tools, list)
    return [tool[what] for tool in tools]


def names(answer: dict[str, object]) -> list[str]:
    return members_found(answer, "name")


def test_its_name_is_one_that_no_event_type_can_get() -> None:
    assert FIND_TOOLS.name in RESERVED


@pytest.mark.parametrize("profile", list(Profile))
def test_it_can_be_declared_to_every_provider(profile: Profile) -> None:
    declared = declare(FIND_TOOLS, profile)

    assert declared["function"]["name"] == "find_tools"
    Draft202012Validator.check_schema(declared["function"]["parameters"])


@pytest.mark.parametrize("arguments", ['{"query": ""}', '{"limit": 3}', '{"query": "a", "limit": 0}'])
def test_arguments_that_make_no_sense_are_refused_by_its_schema(arguments: str) -> None:
    with pytest.raises(InvalidArguments):
        read_arguments(arguments, Validator(FIND_TOOLS.parameters))


def test_it_answers_with_names_and_descriptions_the_best_first() -> None:
    answer = finder(SHOP).answer_call({"query": "forecast of the weather"})

    assert answer == {
        "tools": [{"name": "get_weather", "description": "The weather forecast for a city."}],
        "note": "You can call these tools from now on.",
    }


def test_a_name_in_the_query_comes_before_what_its_words_fit() -> None:
    tools = SHOP | catalogue(a_tool("mail", "Send mail, e-mail and more mail by mail."))

    assert names(finder(tools).answer_call({"query": "send_mail mail", "limit": 1})) == ["send_mail"]
    assert names(finder(tools).answer_call({"query": "use track-parcel", "limit": 1})) == ["track_parcel"]


@pytest.mark.parametrize(
    ("arguments", "room", "expected"),
    [
        ({"query": "order"}, 20, 8),
        ({"query": "order", "limit": 3}, 20, 3),
        ({"query": "order", "limit": 3.0}, 20, 3),
        ({"query": "order", "limit": 20}, 20, 20),
        ({"query": "order", "limit": 5_000}, 50, 20),
        ({"query": "order", "limit": 20}, 4, 4),
        ({"query": "order", "limit": -1}, 4, 1),
        ({"query": 5}, 20, 0),
        ({}, 20, 0),
    ],
)
def test_it_finds_as_many_as_are_wanted_and_can_be_declared(
    arguments: dict[str, object], room: int, expected: int
) -> None:
    tools = catalogue(*(a_tool(f"order_{number:02}") for number in range(30)))

    assert len(names(finder(tools, room).answer_call(arguments))) == expected


def test_only_what_is_offered_is_found() -> None:
    offered = {name: tool for name, tool in SHOP.items() if name != "get_weather"}

    answer = Finder(Index(SHOP), offered, 20).answer_call({"query": "get_weather weather"})

    assert answer["tools"] == []


def test_where_nothing_fits_it_says_what_to_do() -> None:
    assert finder(SHOP).answer_call({"query": "chromodynamics"}) == {
        "tools": [],
        "note": "No tool fits these words. Try others: what is to be done, and with what.",
    }


@pytest.mark.parametrize("description", ["Orders.\n\n  Many   lines\tof them. " * 40, "订单" * 200])
def test_descriptions_are_one_short_line(description: str) -> None:
    tools = catalogue(a_tool("order", description))

    (line,) = members_found(finder(tools).answer_call({"query": "order"}), "description")

    assert "\n" not in line
    assert 100 < len(line) <= 160
    assert line.endswith("…")
