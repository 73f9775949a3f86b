"""The Tools of a namespace, and an agent's choice of them: read once, changed one by one."""

import gc
import time
import weakref
from typing import Any

import pytest

from beckon_agent.agents.kubernetes_tools import AgentTools, ToolStore
from beckon_contract.resources.tools import Requirement, ToolSelector
from tests.agent.cluster_objects import Document, tool


def store(*documents: Document) -> ToolStore:
    made = ToolStore(lambda _: None)
    for document in documents:
        made.put(document)
    return made


def all_of(made: ToolStore, namespace: str = "default") -> AgentTools:
    return made.chosen(namespace, ToolSelector())


def test_an_agent_is_offered_the_ready_tools_of_its_namespace_in_the_order_of_names() -> None:
    made = store(tool("b"), tool("a"), tool("elsewhere", "team-a"), tool("waits", ready="False"))
    catalogue = all_of(made).current

    assert list(catalogue.tools) == ["a", "b"]
    assert [(one.event_type, one.reason, one.message) for one in catalogue.refusals] == [
        ("waits", "NoTrigger", "no Trigger passes it")
    ]
    assert list(all_of(made, "team-a").current.tools) == ["elsewhere"]
    assert all_of(made, "unknown").current.tools == {}
    assert made.count_ready == 3


def test_a_tool_that_comes_changes_and_goes_is_seen_at_the_next_look() -> None:
    made = store(tool("a"))
    view = all_of(made)
    before = view.current
    made.put(tool("b", description="First."))
    made.put(tool("a", ready="Unknown"))
    between = view.current
    made.put(tool("b", description="Second."))
    made.drop("default", "a")
    after = view.current

    assert list(before.tools) == ["a"]
    assert list(between.tools) == ["b"]
    assert [one.event_type for one in between.refusals] == ["a"]
    assert after.tools["b"].description == "Second."
    assert after.refusals == ()
    assert list(before.tools) == ["a"], "what was taken stays as it was"


def test_tools_that_did_not_change_stay_the_same_objects() -> None:
    made = store(*(tool(f"t.{number}") for number in range(20)))
    view = all_of(made)
    before = dict(view.current.tools)
    made.put(tool("t.3", description="Changed."))
    after = view.current.tools

    assert [name for name in after if after[name] is not before[name]] == ["t_3"]
    assert view.current is view.current


@pytest.mark.parametrize(
    ("selector", "chosen"),
    [
        (ToolSelector(), ["alpha", "b_dotted", "gamma"]),
        (ToolSelector(names=frozenset({"alpha", "b_dotted"})), ["alpha", "b_dotted"]),
        (ToolSelector(names=frozenset({"b.dotted"})), ["b_dotted"]),
        (ToolSelector(names=frozenset()), []),
        (ToolSelector(labels={"team": "x"}), ["alpha", "gamma"]),
        (ToolSelector(names=frozenset({"alpha", "b.dotted"}), labels={"team": "x"}), ["alpha"]),
        (ToolSelector(requirements=(Requirement("team", "NotIn", ("x",)),)), ["b_dotted"]),
        (ToolSelector(requirements=(Requirement("extra", "Exists"),)), ["gamma"]),
    ],
    ids=["all", "names", "event-type", "no-names", "labels", "both", "not-in", "exists"],
)
def test_a_selector_chooses_by_names_and_labels(selector: ToolSelector, chosen: list[str]) -> None:
    made = store(
        tool("alpha", labels={"team": "x"}),
        tool("b.dotted"),
        tool("gamma", labels={"team": "x", "extra": ""}),
    )

    assert list(made.chosen("default", selector).current.tools) == chosen


def test_refusals_follow_the_selector_too() -> None:
    made = store(tool("mine", ready="False", labels={"team": "x"}), tool("theirs", ready="False"))
    refusals = made.chosen("default", ToolSelector(labels={"team": "x"})).current.refusals

    assert [one.event_type for one in refusals] == ["mine"]


def test_a_label_that_changes_moves_a_tool_in_and_out() -> None:
    made = store(tool("a"))
    view = made.chosen("default", ToolSelector(labels={"team": "x"}))
    seen = [list(view.current.tools)]
    for labels in ({"team": "x"}, {"team": "y"}):
        made.put(tool("a", labels=labels))
        seen.append(list(view.current.tools))

    assert seen == [[], ["a"], []]


def test_of_two_tools_with_one_name_one_is_offered_and_the_other_is_reported() -> None:
    """The operator gives each its own; between two of its writes both may have the same."""
    made = store(tool("second", name="same"), tool("first", name="same"))
    view = all_of(made)
    catalogue = view.current
    made.drop("default", "first")

    assert catalogue.tools["same"].event_type == "first"
    assert [(one.event_type, one.reason) for one in catalogue.refusals] == [("second", "NameTaken")]
    assert view.current.tools["same"].event_type == "second"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"parameters": {"type": "object", "properties": 5}}, "InvalidTool"),
        ({"parameters": {"type": "nonsense"}}, "InvalidTool"),
        ({"parameters": "text"}, "InvalidTool"),
        ({"name": ""}, "InvalidTool"),
        ({"dispatch": "carrier pigeon"}, "InvalidTool"),
        ({"timeoutSeconds": -1}, "InvalidTool"),
    ],
    ids=["properties", "type", "no-schema", "no-name", "dispatch", "timeout"],
)
def test_a_tool_that_no_operator_can_have_written_is_refused_alone(
    change: dict[str, Any], reason: str
) -> None:
    catalogue = all_of(store(tool("broken", **change), tool("fine"))).current

    assert list(catalogue.tools) == ["fine"]
    assert [(one.event_type, one.reason) for one in catalogue.refusals] == [("broken", reason)]
    assert catalogue.refusals[0].message


def test_a_tool_that_is_nested_absurdly_deep_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(2000):
        deep = {"x": deep}
    catalogue = all_of(store(tool("deep", parameters=deep))).current

    assert [one.reason for one in catalogue.refusals] == ["InvalidTool"]


def test_a_catalogue_that_no_one_holds_any_more_is_forgotten() -> None:
    made = store(tool("a"))
    dropped = weakref.ref(all_of(made))
    source = all_of(made)
    gc.collect()
    made.put(tool("b"))

    assert dropped() is None
    assert list(source.current.tools) == ["a", "b"]


def test_one_change_among_five_thousand_tools_costs_little() -> None:
    begun = time.process_time()
    made = store(*(tool(f"event.{number:04}") for number in range(5000)))
    view = all_of(made)
    assert len(view.current.tools) == 5000
    whole = time.process_time() - begun
    took = []
    for number in range(20):
        begun = time.process_time()
        made.put(tool(f"event.{number:04}", description=f"Changed {number}."))
        assert view.current.tools[f"event_{number:04}"].description == f"Changed {number}."
        took.append(time.process_time() - begun)

    assert sorted(took)[len(took) // 2] < whole / 20
