"""Which Services of the manifests run here."""

from pathlib import Path

import pytest

from beckon_cli.local.services import ADAPTER, AGENT, ServiceName, wanted
from beckon_contract.kubernetes_objects import Resource, parse_manifests

TRIGGER = """
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {{name: t}}
spec:
  broker: default
  filter: {{attributes: {{type: t}}}}
  subscriber: {{uri: "{uri}"}}
"""


def resources(text: str) -> list[Resource]:
    return [one for one in parse_manifests(text, "test.yaml") if isinstance(one, Resource)]


@pytest.mark.parametrize(
    "uri",
    [
        "http://beckon-agent.beckon.svc.cluster.local/events/researcher",
        "http://beckon-agent.beckon.svc/events",
    ],
)
def test_a_trigger_that_leads_to_the_agent_leads_to_the_one_here(uri: str) -> None:
    needs = wanted(resources(TRIGGER.format(uri=uri)), "http://127.0.0.1:8080")

    assert needs.services[AGENT].url == "http://127.0.0.1:8080"
    assert needs.missing() == {}


def test_the_adapter_is_run_where_a_trigger_leads_to_it() -> None:
    uri = "http://beckon-adapter.beckon.svc.cluster.local"
    needs = wanted(resources(TRIGGER.format(uri=uri)))

    assert needs.services[ADAPTER].command[-1] == "beckon_adapter"


def test_a_service_that_nothing_serves_is_reported_with_the_cure() -> None:
    missing = wanted(resources(TRIGGER.format(uri="http://orders.shop.svc.cluster.local"))).missing()

    assert "beckon.dev/local-command" in missing[ServiceName("shop", "orders")]


def test_the_examples_leave_nothing_to_be_served() -> None:
    examples = Path(__file__).parents[2] / "deploy" / "examples"
    found = [one for path in sorted(examples.rglob("*.yaml")) for one in resources(path.read_text("utf-8"))]

    assert found
    assert wanted(found, "http://127.0.0.1:8080").missing() == {}
