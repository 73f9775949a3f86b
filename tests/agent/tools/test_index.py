"""What the ranking finds, and by which parts of a tool."""

from dataclasses import replace

import pytest

from beckon_agent.tools.bm25 import Index
from beckon_agent.tools.query import query_of_text
from beckon_contract.resources.tools import Tool
from tests.agent.tools.some_tools import SHOP, a_tool, catalogue


def best(tools: dict[str, Tool], text: str, most: int = 64) -> list[str]:
    return Index(tools).find_best(query_of_text(text), most)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Will it rain? I need a forecast for Rome", "get_weather"),
        ("please translate this into French", "translate_text"),
        ("play me a song", "play_music"),
        ("cancelling my order", "cancel_order"),
    ],
)
def test_the_tool_whose_words_are_requested_is_first(question: str, expected: str) -> None:
    assert best(SHOP, question)[0] == expected


def test_a_tool_without_any_word_of_the_question_is_not_found() -> None:
    assert best(SHOP, "quantum chromodynamics") == []
    assert best(SHOP, "") == []


def test_a_word_in_the_name_counts_more_than_the_same_word_in_an_explanation() -> None:
    explained = {"place": {"type": "string", "description": "A city, such as one with an invoice."}}
    tools = catalogue(
        a_tool("alpha", "Does something.", parameters=explained), a_tool("invoice", "Does something.")
    )

    assert best(tools, "invoice") == ["invoice", "alpha"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"iban": {"type": "string"}},
        {"account": {"type": "string", "description": "The IBAN."}},
        {"kind": {"type": "string", "enum": ["iban", "bic"]}},
        {"account": {"type": "object", "properties": {"iban": {"type": "string"}}}},
        {"accounts": {"type": "array", "items": {"type": "object", "properties": {"iban": {}}}}},
        {"account": {"anyOf": [{"type": "null"}, {"properties": {"iban": {}}}]}},
    ],
)
def test_a_tool_is_found_by_what_its_parameters_say(parameters: dict[str, object]) -> None:
    tools = SHOP | catalogue(a_tool("alpha", "Does something.", parameters=parameters))

    assert best(tools, "IBAN") == ["alpha"]


def test_definitions_are_followed_and_recursion_ends() -> None:
    tool = a_tool("alpha", parameters={"tree": {"$ref": "#/$defs/node"}})
    node = {"type": "object", "properties": {"leaf": {}, "child": {"$ref": "#/$defs/node"}}}
    schema = {**tool.parameters, "$defs": {"node": node}}
    tools = {"alpha": replace(tool, parameters=schema), "beta": a_tool("beta")}

    assert best(tools, "leaf") == ["alpha"]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": None},
        {"properties": ["a"]},
        {"properties": {"a": True}},
        {"properties": {"a": {"description": 5, "enum": "no list", "items": 3, "anyOf": {}}}},
        {"$ref": "#/$defs/missing"},
        {"$defs": 5, "$ref": 5},
    ],
)
def test_a_schema_of_any_form_does_no_harm(schema: dict[str, object]) -> None:
    tools = {"alpha": replace(a_tool("alpha", "Brews coffee."), parameters=schema)}

    assert best(tools, "coffee") == ["alpha"]


def test_tools_of_one_service_come_with_the_one_that_is_requested() -> None:
    service = [
        a_tool(name, f"Details about the {name}.", event_type=f"com.acme.shop.{name}")
        for name in ("customer", "stock", "invoice")
    ]
    tools = SHOP | catalogue(*service)

    found = best(tools, "which invoice is open")

    assert found[0] == "invoice"
    assert set(found) == {"invoice", "customer", "stock"}


def test_without_a_share_only_words_count() -> None:
    tools = catalogue(a_tool("invoice", event_type="shop.a"), a_tool("customer", event_type="shop.b"))

    assert Index(tools, share=0.0).find_best(query_of_text("invoice"), 64) == ["invoice"]


def test_the_label_part_of_makes_a_service_whatever_the_types_are() -> None:
    labels = {"app.kubernetes.io/part-of": "shop"}
    tools = catalogue(
        a_tool("invoice", "Details.", event_type="a.b", labels=labels),
        a_tool("customer", "Details.", event_type="c.d", labels=labels),
        a_tool("weather", "Details.", event_type="c.e"),
    )

    assert best(tools, "invoice") == ["invoice", "customer"]


def test_a_lone_tool_does_not_lift_itself_over_a_better_one_of_a_large_service() -> None:
    service = [a_tool(f"beta{n}", "Something else.", event_type=f"com.acme.beta{n}") for n in range(100)]
    better = a_tool("order_cancel", "Cancel.", event_type="com.acme.cancel")
    tools = catalogue(better, a_tool("alpha", "Cancel an order.", event_type="alone.order"), *service)

    assert best(tools, "cancel order", 2) == ["order_cancel", "alpha"]


def test_among_many_services_that_are_alike_the_tool_that_is_requested_comes_first() -> None:
    tools = catalogue(
        *(
            a_tool(f"{verb}_{noun}_{n}", f"To {verb} the {noun}.", event_type=f"s{n}.{noun}.{verb}")
            for n in range(60)
            for noun in ("order", "account")
            for verb in ("merge", "rename")
        )
    )
    query = query_of_text("merge the order") | query_of_text("rename", 0.4)

    assert all(name.startswith("merge_order") for name in Index(tools).find_best(query, 60))


def test_the_larger_a_service_is_the_less_its_tools_lift_each_other() -> None:
    def of_service(name: str, size: int) -> list[Tool]:
        return [a_tool(f"{name}{n}", "", event_type=f"{name}.x{n}") for n in range(size)]

    request = [a_tool(f"order_{name}", event_type=f"{name}.order") for name in ("small", "large", "huge")]
    services = [*of_service("small", 3), *of_service("large", 60), *of_service("huge", 300)]

    found = best(catalogue(*request, *services), "order", 400)

    assert set(found[:3]) == {tool.name for tool in request}
    assert found[3:6] == ["small0", "small1", "small2"]
    assert {name[:5] for name in found[6:]} == {"large"}


def test_equal_tools_keep_the_order_of_the_catalogue() -> None:
    tools = catalogue(*(a_tool(name, "The same words.") for name in ("cc", "aa", "bb")))

    assert best(tools, "the same words") == ["aa", "bb", "cc"]


def test_no_more_are_found_than_requested_and_none_that_may_not_be() -> None:
    index = Index(SHOP)
    query = query_of_text("money order mail text city picture song")

    assert len(index.find_best(query, 3)) == 3
    assert "cancel_order" in index.find_best(query, 64)
    assert "cancel_order" not in index.find_best(query, 64, lambda name: name != "cancel_order")


def test_a_catalogue_without_tools_finds_none() -> None:
    assert best({}, "order") == []
