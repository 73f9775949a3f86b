"""The manifests of every shipped tool: as printed, as in deploy/examples, as the contract reads them."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from beckon_contract.catalogue.builder import build_catalogue
from beckon_contract.catalogue.check import check
from beckon_contract.knative.triggers import parse_trigger
from beckon_contract.kubernetes_objects import Resource, parse_manifests
from beckon_contract.schema.arguments import read_arguments
from beckon_tools import Hints, Later, Progress, Ticket, tool
from beckon_tools.command import find_tool
from beckon_tools.declaration import AnyTool
from beckon_tools.manifests import Placement, event_type, write_manifests
from beckon_tools.settings import Settings
from beckon_tools.shipped import SHIPPED
from tests.shared_data import shared_data

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
KINDS = ("eventtype", "trigger", "service")


def shipped(name: str) -> AnyTool:
    return find_tool(name, Settings.model_construct())


def resources(text: str) -> list[Resource]:
    found = list(parse_manifests(text, "test.yaml"))
    assert all(isinstance(resource, Resource) for resource in found), found
    return [resource for resource in found if isinstance(resource, Resource)]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_examples_are_what_the_command_prints(name: str) -> None:
    printed = write_manifests(shipped(name), Placement(name))
    stored = {kind: (EXAMPLES / name / f"{kind}.yaml").read_text("utf-8") for kind in KINDS}
    for kind in KINDS:
        assert yaml.safe_load(stored[kind]) == yaml.safe_load(printed[kind])
    assert stored == printed


def test_every_example_with_a_service_is_a_shipped_tool() -> None:
    assert {path.parent.name for path in EXAMPLES.glob("*/service.yaml")} == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_tool_is_found_by_the_name_of_its_service_and_of_its_event_type(name: str) -> None:
    tool_found = shipped(name)
    assert tool_found.service == name
    assert shipped(tool_found.name).type == tool_found.type


@pytest.mark.parametrize("name", SHIPPED)
def test_the_contract_reads_the_manifests_as_one_routed_tool(name: str) -> None:
    declared = shipped(name)
    manifests = resources("".join(write_manifests(declared, Placement(name)).values()))
    catalogue = build_catalogue(manifests)
    assert catalogue.refusals == ()
    (entry,) = catalogue.tools.values()
    assert entry.type == declared.type
    assert entry.description == declared.description
    assert entry.parameters == declared.signature.schema
    assert entry.routes == (name,)
    assert entry.read_only
    assert entry.idempotent


def test_all_examples_in_one_folder_have_no_mistakes() -> None:
    text = "".join(path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*/*.yaml")))
    assert [finding for finding in check(resources(text)).findings if finding.severity == "error"] == []


def test_a_trigger_passes_the_tools_type_and_keeps_the_brokers_dead_letter_sink() -> None:
    text = write_manifests(shipped("calculator"), Placement("calculator"))["trigger"]
    trigger = parse_trigger(resources(text)[0])
    assert trigger.filter({"type": "calculator", "source": "/a", "id": "1", "specversion": "1.0"})
    assert not trigger.filter({"type": "calculator.reply", "source": "/a", "id": "1", "specversion": "1.0"})
    assert trigger.delivery is None
    assert "# " in text


def test_for_a_broker_without_a_dead_letter_sink_the_trigger_names_one() -> None:
    sink = "http://beckon-shim-replies.beckon.svc.cluster.local/dead-letters"
    text = write_manifests(shipped("calculator"), Placement("calculator", dead_letters=sink))["trigger"]
    delivery = parse_trigger(resources(text)[0]).delivery
    assert delivery is not None
    assert delivery.dead_letter is not None
    assert (delivery.dead_letter.uri, delivery.retry) == (sink, 5)
    assert "There is no spec.delivery" not in text


def test_the_service_has_the_least_rights_that_do() -> None:
    text = write_manifests(shipped("sql"), Placement("sql", image="registry.example/tools:2"))["service"]
    manifest: dict[str, Any] = yaml.safe_load(text)
    (container,) = manifest["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example/tools:2"
    assert container["command"] == ["python", "-m", "beckon_tools"]
    assert container["args"][:2] == ["serve", "sql"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert manifest["metadata"]["labels"]["networking.knative.dev/visibility"] == "cluster-local"


def test_namespace_and_broker_are_those_requested() -> None:
    placement = Placement("sql", broker="orders", namespace="shop")
    found = resources("".join(write_manifests(shipped("sql"), placement).values()))
    assert {resource.namespace for resource in found} == {"shop"}
    assert [resource.spec["broker"] for resource in found if resource.kind == "Trigger"] == ["orders"]


def test_the_parameters_stand_in_the_annotation_and_in_schema_data() -> None:
    manifest = event_type(shipped("get-current-weather"), Placement("x"))
    annotation = manifest["metadata"]["annotations"]["beckon.dev/parameters"]
    assert annotation == manifest["spec"]["schemaData"]
    assert orjson.loads(annotation) == shipped("get-current-weather").signature.schema


@tool(type="pay", hints=Hints(requires_approval=True, timeout=90))
async def pay(amount: int) -> None:
    """Pay an amount."""


def test_hints_become_annotations_that_the_contract_reads() -> None:
    text = "".join(write_manifests(pay, Placement("shop:pay")).values())
    (entry,) = build_catalogue(resources(text)).tools.values()
    assert (entry.requires_approval, entry.timeout, entry.read_only, entry.idempotent) == (
        True,
        90,
        False,
        False,
    )


@tool(type="pages.write")
async def write_pages(progress: Progress) -> None:
    """Write pages."""


@tool(type="pages.print")
def print_pages(ticket: Ticket) -> Later:
    """Print pages."""
    return Later()


@pytest.mark.parametrize("declared", [write_pages, print_pages])
def test_a_tool_that_sends_events_of_its_own_is_reported_its_broker(declared: AnyTool) -> None:
    printed = write_manifests(declared, Placement("pages:write", broker="orders", namespace="shop"))
    found = resources("".join(printed.values()))
    (binding,) = [resource for resource in found if resource.kind == "SinkBinding"]
    (service,) = [resource for resource in found if resource.kind == "Service"]

    assert binding.spec["sink"]["ref"]["name"] == "orders"
    assert binding.spec["subject"]["name"] == service.name
    assert binding.namespace == "shop"
    assert check(found).errors == 0


@pytest.mark.parametrize("declared", [write_pages, print_pages])
def test_a_plain_tool_is_a_deployment_behind_the_service_of_its_trigger(declared: AnyTool) -> None:
    printed = write_manifests(declared, Placement("pages:write", plain=True))
    found = {resource.kind: resource for resource in resources("".join(printed.values()))}
    pod = found["Deployment"].spec["template"]
    knative = yaml.safe_load(write_manifests(declared, Placement("pages:write"))["service"])["spec"]

    assert found["Trigger"].spec["subscriber"]["ref"] == {
        "apiVersion": "v1",
        "kind": "Service",
        "name": declared.service,
    }
    assert found["Service"].spec["selector"] == pod["metadata"]["labels"]
    assert found["Service"].spec["ports"] == [{"port": 80, "targetPort": 8080}]
    assert found["SinkBinding"].spec["subject"]["kind"] == "Deployment"
    (container,) = pod["spec"]["containers"]
    assert container["readinessProbe"] == {"httpGet": {"path": "/readyz", "port": 8080}}
    assert container["securityContext"] == knative["template"]["spec"]["containers"][0]["securityContext"]
    assert ("volumes" in pod["spec"]) == (declared is print_pages)
    assert check(list(found.values())).errors == 0


def test_a_tool_that_answers_late_has_an_outbox_and_a_pod_at_any_time() -> None:
    late, other = (
        yaml.safe_load(write_manifests(declared, Placement("pages:write"))["service"])["spec"]["template"]
        for declared in (print_pages, write_pages)
    )
    (container,) = late["spec"]["containers"]
    (mount,) = container["volumeMounts"]
    (volume,) = late["spec"]["volumes"]
    (setting,) = container["env"]

    assert setting["name"] == "BECKON_TOOLS_OUTBOX"
    assert Path(setting["value"]).parent == Path(mount["mountPath"])
    assert mount["name"] == volume["name"]
    assert "emptyDir" in volume
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert late["metadata"]["annotations"] == {"autoscaling.knative.dev/min-scale": "1"}
    assert other["metadata"]["annotations"] == {"autoscaling.knative.dev/min-scale": "0"}
    assert "volumes" not in other["spec"]
    assert not {"env", "volumeMounts"} & set(other["spec"]["containers"][0])


@pytest.mark.parametrize("unit", ["celsius", "farenheit", "fahrenheit", None])
def test_the_manifests_of_knatives_blog_work_with_the_shipped_service(unit: str | None) -> None:
    folder = shared_data("examples")
    text = "---\n".join(
        (folder / f"blog-{kind}.yaml").read_text("utf-8") for kind in ("eventtype", "trigger")
    )
    (entry,) = build_catalogue(resources(text)).tools.values()
    trigger = next(parse_trigger(found) for found in resources(text) if found.kind == "Trigger")
    arguments = {"location": "San Francisco, CA"} | ({"unit": unit} if unit else {})
    read = read_arguments(arguments, entry.parameters).value
    weather = shipped("get-current-weather")
    assert entry.type == weather.type
    assert trigger.subscriber.ref is not None
    assert trigger.subscriber.ref.name == weather.service
    assert weather.signature.read(orjson.dumps(read))["unit"] in ("celsius", "fahrenheit")
