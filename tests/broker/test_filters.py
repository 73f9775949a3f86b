import json
from pathlib import Path
from typing import Any

from beckon_contract.cloudevents.events import CloudEvent
from tests.broker.broker_process import running_broker, trigger
from tests.broker.subscribers import subscriber
from tests.patience import eventually
from tests.shared_data import shared_data

FEATURES: list[dict[str, Any]] = json.loads(shared_data("knative-filters", "rekt-features.json").read_text())


def event_of(case: dict[str, Any], number: int) -> CloudEvent:
    attributes = dict(case["event"])
    attributes.pop("specversion")
    core = {name: attributes.pop(name) for name in ("source", "type", "subject") if name in attributes}
    attributes.pop("id")
    return CloudEvent(f"case-{number}", **core, extensions=attributes)


async def test_every_filter_dialect_delivers_what_knative_delivers(tmp_path: Path) -> None:
    """One namespace for each of Knative's filter features; every event is sent to its own."""
    manifests, expected = [], {}
    async with subscriber() as tool:
        for number, feature in enumerate(FEATURES):
            spec = {name: feature[name] for name in ("filter", "filters") if feature.get(name)}
            manifests.append(trigger("t", f"{tool.url}{number}", namespace=f"n{number}", **spec))
        async with running_broker(tmp_path, *manifests) as running:
            for number, feature in enumerate(FEATURES):
                for index, case in enumerate(feature["cases"]):
                    sent = event_of(case, number * 1000 + index)
                    answer = await running.send(sent, to=f"n{number}/default")
                    assert answer.status == 202
                    expected[sent.id] = case["deliver"]

            async def finished() -> bool:
                return await running.metric("queue_length") == 0

            await eventually(finished)

    delivered = {event.id for event in tool.events}
    assert len(expected) > 20
    assert delivered == {name for name, deliver in expected.items() if deliver}
