"""The index of Triggers finds those whose filters pass, and compares an event with few others."""

from collections.abc import Mapping
from typing import Any

import pytest

from beckon_broker.envelope import BrokerName
from beckon_broker.topology import Routes, Subscription
from beckon_contract.cloudevents.events import AttributeValue
from beckon_contract.knative.delivery import Delivery
from beckon_contract.knative.filters import compile_filter, required_attributes
from beckon_contract.kubernetes_objects import Key

SPECS: list[dict[str, Any]] = [
    {},
    {"filter": {"attributes": {"type": "a"}}},
    {"filter": {"attributes": {"type": "a", "source": "/s"}}},
    {"filter": {"attributes": {"replyid": ""}}},
    {"filter": {"attributes": {"type": "a"}}, "filters": [{"exact": {"type": "b"}}]},
    {"filters": [{"exact": {"source": "/s"}}, {"prefix": {"type": "a"}}]},
    {"filters": [{"all": [{"exact": {"type": "b"}}, {"suffix": {"source": "s"}}]}]},
    {"filters": [{"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]}]},
    {"filters": [{"not": {"exact": {"type": "a"}}}]},
    {"filters": [{"cesql": "type = 'b' OR EXISTS replyid"}]},
    {"filters": [{"exact": {"type": ""}}]},
    {"filters": [{"exact": {"count": "5"}}]},
    {"filter": {"attributes": {"time": "2026-01-31T09:30:00Z"}}},
    {"filter": {"attributes": {"datamediatype": "application/json"}}},
]
EVENTS: list[dict[str, AttributeValue]] = [
    {"type": "a", "source": "/s"},
    {"type": "b", "source": "/s", "replyid": "t"},
    {"type": "ab", "source": "/other", "count": 5},
    {"type": "c", "source": "/s", "replyid": ""},
    {"type": "c", "source": "/x", "time": "2026-01-31T09:30:00.000Z"},
    {"type": "c", "source": "/x", "datacontenttype": "Application/JSON; charset=utf-8"},
]


def subscription(number: int, spec: Mapping[str, Any]) -> Subscription:
    return Subscription(
        Key("eventing.knative.dev", "Trigger", "default", f"t{number}"),
        BrokerName("default", "default"),
        compile_filter(spec),
        "http://127.0.0.1:9/",
        Delivery(),
        None,
        required_attributes(spec),
    )


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_the_index_passes_what_the_filters_pass(event: dict[str, AttributeValue]) -> None:
    subscriptions = [subscription(number, spec) for number, spec in enumerate(SPECS)]

    found = Routes(subscriptions).passing({"specversion": "1.0", "id": "1", **event})

    passed = {each.key for each in subscriptions if each.filter({"specversion": "1.0", "id": "1", **event})}
    assert passed
    assert {each.key for each in found} == passed
    assert len(found) == len(passed)


def test_an_event_is_compared_with_the_triggers_of_its_type_alone() -> None:
    compared: list[int] = []

    def counting(number: int) -> Subscription:
        found = subscription(number, {"filter": {"attributes": {"type": f"t.{number}"}}})

        def passes(attributes: Mapping[str, AttributeValue]) -> bool:
            compared.append(number)
            return found.filter(attributes)

        return Subscription(
            found.key, found.broker, passes, found.subscriber, found.delivery, None, found.required
        )

    routes = Routes([counting(number) for number in range(1000)])

    assert len(routes.passing({"type": "t.7", "source": "/s", "id": "1"})) == 1
    assert compared == [7]
