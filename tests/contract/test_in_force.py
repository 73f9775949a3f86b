"""The request of the operator for the Triggers in force, and the broker's answer to it."""

from typing import Any

import pytest

from beckon_contract.knative.broker_class import (
    MAX_STATES,
    LogReport,
    TriggerState,
    in_force_answer,
    in_force_request,
    read_answer,
    read_request,
)

STATE = TriggerState("default", "t", "uid-1", 3, "http://tool/", "")
DOCUMENT: dict[str, Any] = in_force_request([STATE], 1.5)["triggers"][0]


def test_a_request_and_an_answer_are_read_as_they_were_written() -> None:
    log = LogReport("nats:4222", "", "file", 3)

    assert read_request(in_force_request([STATE], 1.5)) == ([STATE], 1.5)
    assert read_answer(in_force_answer([STATE], log)) == (frozenset({STATE}), log)


@pytest.mark.parametrize(
    ("document", "mistake"),
    [
        ([], "the request is no JSON object"),
        ({}, "triggers must be a list"),
        ({"triggers": [DOCUMENT] * (MAX_STATES + 1)}, "triggers must be a list of at most 1000"),
        ({"triggers": [], "waitSeconds": True}, "waitSeconds must be a number from 0 to 5"),
        ({"triggers": [], "waitSeconds": "1"}, "waitSeconds must be a number from 0 to 5"),
        ({"triggers": [], "waitSeconds": 5.1}, "waitSeconds must be a number from 0 to 5"),
        ({"triggers": ["t"]}, "a Trigger must be a JSON object"),
        ({"triggers": [{**DOCUMENT, "generation": True}]}, "generation must be an integer"),
        ({"triggers": [{**DOCUMENT, "generation": "3"}]}, "generation must be an integer"),
        ({"triggers": [{**DOCUMENT, "uid": 7}]}, "uid must be a string"),
    ],
)
def test_the_first_mistake_of_a_request_is_named(document: object, mistake: str) -> None:
    with pytest.raises(ValueError, match=mistake):
        read_request(document)


@pytest.mark.parametrize("document", [None, [], {}, {"routed": {}}, {"routed": [{}]}])
def test_what_is_no_answer_is_refused(document: object) -> None:
    with pytest.raises(ValueError, match=r"routed|generation"):
        read_answer(document)


@pytest.mark.parametrize("log", [None, "x", {}, {"address": None, "replicas": "3"}])
def test_an_answer_without_a_report_of_the_log_has_an_empty_one(log: object) -> None:
    assert read_answer({"routed": [], "log": log}).log == LogReport("", "", "", 0)
