"""What `beckon check` says of rules."""

import json

from beckon_adapter.check import check_rules
from beckon_contract.catalogue.diagnostics import Finding
from tests.adapter.plain_api import event_type

SCHEMA = {"type": "object", "properties": {"city": {}, "unit": {}}, "required": ["city"]}


def found(rule: object, parameters: object = SCHEMA) -> list[Finding]:
    return list(check_rules([event_type(rule, parameters)]))


def test_a_sound_rule_gives_nothing_to_say() -> None:
    assert found({"url": "https://a.example/{city}", "query": {"unit": "{unit}"}}) == []


def test_every_mistake_is_an_error_with_its_place() -> None:
    findings = found({"url": "https://a.example/{town}", "query": {"unit": "{units}"}})

    assert [(one.severity, one.field.partition("]")[2], one.name) for one in findings] == [
        ("error", ".url", "asked"),
        ("error", ".query[unit]", "asked"),
    ]


def test_an_argument_of_the_path_that_may_be_absent_and_one_that_goes_nowhere_are_warned_of() -> None:
    findings = found({"url": "https://a.example/{unit}"})

    assert [(one.severity, one.message.partition(":")[0]) for one in findings] == [
        ("warning", "needs {unit}, which is not required"),
        ("warning", "uses no argument city"),
    ]


def test_what_the_contract_says_of_an_eventtype_is_not_said_twice() -> None:
    broken = event_type({"url": "https://a.example/"}, json.loads('{"type": "object", "properties": 5}'))

    assert list(check_rules([broken])) == []
