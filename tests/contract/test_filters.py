import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.knative.filters import MAX_DEPTH, MAX_ELEMENTS, FilterError, compile_filter
from tests.shared_data import shared_data

UNIT = [
    json.loads(line) for line in shared_data("knative-filters", "unit.jsonl").read_text("utf-8").splitlines()
]
FEATURES = json.loads(shared_data("knative-filters", "rekt-features.json").read_text("utf-8"))
EVENT: dict[str, AttributeValue] = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "t",
    "n": 5,
    "flag": True,
    "ext": "value",
}
ELEMENTS = st.recursive(
    st.sampled_from(
        [
            {"exact": {"type": "t"}},
            {"prefix": {"ext": "val"}},
            {"suffix": {"missing": "x"}},
            {"exact": {"n": "5", "flag": "true"}},
            {"cesql": "n > 3"},
            {"cesql": "missing = 'x'"},
        ]
    ),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda elements: {"all": elements})
        | st.lists(inner, min_size=1, max_size=3).map(lambda elements: {"any": elements})
        | inner.map(lambda element: {"not": element})
    ),
    max_leaves=8,
)


def passes(*filters: dict[str, Any], **attributes: AttributeValue) -> bool:
    return compile_filter({"filters": list(filters)})({**EVENT, **attributes})


def passes_attributes(wanted: dict[str, str], **attributes: AttributeValue) -> bool:
    return compile_filter({"filter": {"attributes": wanted}})({**EVENT, **attributes})


def refusal(spec: dict[str, Any]) -> list[str]:
    with pytest.raises(FilterError) as caught:
        compile_filter(spec)
    return [problem.path for problem in caught.value.problems]


@pytest.mark.parametrize("case", UNIT, ids=lambda case: case["id"])
def test_the_unit_cases_of_knative_agree(case: dict[str, Any]) -> None:
    spec: dict[str, Any] = {name: case[name] for name in ("filter", "filters") if name in case}
    if "some-other-attribute" in json.dumps(spec):
        # Knative's unit test goes past its webhook, which lets no such Trigger in.
        assert refusal(spec)
        return

    assert compile_filter(spec)(case["event"]) is (case["result"] != "fail")


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature["feature"])
def test_the_end_to_end_cases_of_knative_agree(feature: dict[str, Any]) -> None:
    event_filter = compile_filter({"filter": feature["filter"], "filters": feature["filters"]})

    for case in feature["cases"]:
        assert event_filter(case["event"]) is case["deliver"]


@pytest.mark.parametrize("spec", [{}, {"filter": {}}, {"filter": {"attributes": {}}}, {"filters": []}])
def test_no_filter_passes_every_event(spec: Any) -> None:
    assert compile_filter(spec)(EVENT)


def test_filters_override_filter() -> None:
    spec = {"filter": {"attributes": {"type": "other"}}, "filters": [{"exact": {"type": "t"}}]}

    assert compile_filter(spec)(EVENT)
    assert not compile_filter({**spec, "filters": []})(EVENT)


def test_an_empty_value_in_filter_attributes_asks_for_presence() -> None:
    assert passes_attributes({"replyid": ""}, replyid="token")
    assert not passes_attributes({"replyid": ""})
    assert not passes_attributes({"replyid": ""}, replyid="")
    assert not passes_attributes({"subject": ""})


def test_filter_attributes_compares_types_and_filters_compare_texts() -> None:
    assert not passes_attributes({"n": "5"})
    assert not passes_attributes({"flag": "true"})
    assert passes_attributes({"n": "", "flag": ""})
    assert passes({"exact": {"n": "5"}})
    assert passes({"exact": {"flag": "true"}})
    assert passes({"prefix": {"flag": "tr"}})
    assert passes({"suffix": {"n": "5"}})


@pytest.mark.parametrize("dialect", ["exact", "prefix", "suffix"])
def test_an_element_with_an_empty_value_is_skipped(dialect: str) -> None:
    assert passes({dialect: {"type": ""}})
    assert passes({dialect: {"replyid": ""}})
    assert passes({dialect: {"type": "", "ext": "other"}})
    assert not passes({dialect: {"type": ""}}, {"exact": {"type": "other"}})
    assert not passes({"any": [{dialect: {"type": ""}}, {"exact": {"type": "other"}}]})
    assert passes({"any": [{dialect: {"type": ""}}]})


@pytest.mark.parametrize("element", [{}, {"not": {}}, {"not": None}, {"all": []}, {"any": []}, {"cesql": ""}])
def test_an_element_that_says_nothing_has_no_say(element: dict[str, Any]) -> None:
    assert passes(element)
    assert passes({"not": element})
    assert not passes(element, {"exact": {"type": "other"}})
    assert not passes({"any": [element, {"exact": {"type": "other"}}]})


def test_not_of_a_missing_attribute_passes() -> None:
    assert passes({"not": {"exact": {"missing": "x"}}})


def test_several_attributes_of_one_element_must_all_match() -> None:
    assert passes({"prefix": {"type": "t", "ext": "val"}})
    assert not passes({"prefix": {"type": "t", "ext": "other"}})


@pytest.mark.parametrize(
    "expression",
    ["type", "n", "n + 1", "missing = 'x'", "NOT (missing = 'x')", "type > 3", "1 / 0 = 0", "NOPE()"],
)
def test_an_expression_with_an_error_or_no_boolean_passes_nothing(expression: str) -> None:
    assert not passes({"cesql": expression})
    assert passes({"not": {"cesql": expression}})


@pytest.mark.parametrize(
    ("wanted", "attributes"),
    [
        ({"time": "0001-01-01T00:00:00Z"}, {}),
        ({"time": "2020-01-02T03:04:05Z"}, {"time": "2020-01-02T03:04:05.000Z"}),
        ({"time": "2020-01-02T03:04:05.12Z"}, {"time": "2020-01-02T03:04:05.120Z"}),
        ({"time": "2020-01-02T03:04:05Z"}, {"time": "2020-01-02T03:04:05+00:00"}),
        ({"time": "2020-01-02T03:04:05.123456789Z"}, {"time": "2020-01-02t03:04:05.1234567891z"}),
        ({"time": "2020-01-02T03:04:05.1Z"}, {"time": "2020-01-02T03:04:05.1" + "0" * 50_000 + "Z"}),
        ({"time": "2020-01-02T03:04:05+02:00"}, {"time": "2020-01-02T03:04:05+02:00"}),
        ({"schemaurl": "http://x"}, {"dataschema": "http://x"}),
        ({"datamediatype": "application/json"}, {"datacontenttype": "Application/JSON; charset=utf-8"}),
    ],
)
def test_standard_attributes_have_the_values_that_go_gives_them(
    wanted: dict[str, str], attributes: Any
) -> None:
    assert passes_attributes(wanted, **attributes)
    assert passes({"exact": wanted}, **attributes)


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"filter": [{"attributes": {}}]}, ["spec.filter"]),
        ({"filter": {"type": "x"}}, ["spec.filter.type"]),
        ({"filter": {"attributes": {"type": 5}}}, ["spec.filter.attributes[type]"]),
        ({"filter": {"attributes": {"Type": "x"}}}, ["spec.filter.attributes[Type]"]),
        ({"filters": {"exact": {"type": "x"}}}, ["spec.filters"]),
        ({"filters": ["type = 'x'"]}, ["spec.filters[0]"]),
        ({"filters": [{"exakt": {"type": "x"}}]}, ["spec.filters[0].exakt"]),
        ({"filters": [{"exact": []}]}, ["spec.filters[0].exact"]),
        ({"filters": [{"exact": {"a": "x"}, "suffix": {"b": "y"}}]}, ["spec.filters[0]"]),
        ({"filters": [{"any": {"exact": {"a": "x"}}}]}, ["spec.filters[0].any"]),
        ({"filters": [{"not": [{"exact": {"a": "x"}}]}]}, ["spec.filters[0].not"]),
        ({"filters": [{"cesql": 5}]}, ["spec.filters[0].cesql"]),
        ({"filters": [{"cesql": "type ="}]}, ["spec.filters[0].cesql"]),
        (
            {"filters": [{"all": [{"exact": {"A": "x"}}, {"cesql": "("}]}]},
            ["spec.filters[0].all[0].exact[A]", "spec.filters[0].all[1].cesql"],
        ),
        (
            {"filter": {"attributes": {"0": "x"}}, "filters": [{"exact": {"_": "x"}}]},
            ["spec.filter.attributes[0]", "spec.filters[0].exact[_]"],
        ),
    ],
)
def test_mistakes_are_refused_with_their_fields(spec: Any, paths: Any) -> None:
    assert refusal(spec) == paths


def test_filters_beyond_the_limits_are_refused_once() -> None:
    deep: dict[str, Any] = {"exact": {"type": "t"}}
    for _ in range(MAX_DEPTH):
        deep = {"not": deep}
    cyclic: dict[str, Any] = {}
    cyclic["all"] = [cyclic, cyclic]

    assert len(refusal({"filters": [deep]})) == 1
    assert len(refusal({"filters": [cyclic]})) == 1
    assert len(refusal({"filters": [{"exact": {"type": "t"}}] * (MAX_ELEMENTS + 5)})) == 1
    assert not passes(deep["not"])  # an odd number of inversions
    assert passes(*[{"exact": {"type": "t"}}] * MAX_ELEMENTS)


@given(st.lists(ELEMENTS, min_size=1, max_size=4))
@settings(deadline=None)
def test_filters_all_any_and_not_are_the_logic_of_their_names(elements: list[dict[str, Any]]) -> None:
    verdicts = [passes(element) for element in elements]

    assert passes(*elements) is all(verdicts)
    assert passes({"all": elements}) is all(verdicts)
    assert passes({"any": elements}) is any(verdicts)
    assert [passes({"not": element}) for element in elements] == [not verdict for verdict in verdicts]


@given(
    ELEMENTS,
    st.dictionaries(
        st.sampled_from(["type", "ext", "n", "flag", "time"]), st.text() | st.integers() | st.booleans()
    ),
)
@settings(deadline=None)
def test_a_filter_never_raises(element: dict[str, Any], attributes: Any) -> None:
    assert compile_filter({"filters": [element]})(attributes) in {True, False}
