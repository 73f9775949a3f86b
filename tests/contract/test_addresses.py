from typing import Any

import pytest

from beckon_contract.knative.addresses import AddressBook, Unaddressable, with_readiness
from beckon_contract.knative.delivery import Destination, Reference
from beckon_contract.kubernetes_objects import Resource, condition

REF = Reference("serving.knative.dev/v1", "Service", "shop", "weather")


def service(status: dict[str, Any], api_version: str = REF.api_version) -> Resource:
    return Resource(api_version, "Service", "shop", "weather", {}, status=status)


def resolve(destination: Destination, *resources: Resource) -> str:
    return AddressBook(resources).resolve(destination)


def why_not(destination: Destination, *resources: Resource) -> str:
    with pytest.raises(Unaddressable) as refusal:
        resolve(destination, *resources)
    return str(refusal.value)


def test_a_destination_without_a_reference_is_its_uri() -> None:
    assert resolve(Destination(uri="http://tool:8080/calls?x=1")) == "http://tool:8080/calls?x=1"


def test_an_object_is_addressed_by_its_published_address() -> None:
    found = service({"address": {"url": "http://weather.shop.svc.cluster.local"}})

    assert resolve(Destination(REF), found) == "http://weather.shop.svc.cluster.local"


def test_of_several_addresses_the_first_counts_and_the_single_one_not_at_all() -> None:
    status = {
        "addresses": [{"url": "https://first"}, {"url": "http://second"}],
        "address": {"url": "http://old"},
    }

    assert resolve(Destination(REF), service(status)) == "https://first"


def test_an_empty_list_of_addresses_leaves_the_single_one() -> None:
    assert (
        resolve(Destination(REF), service({"addresses": [], "address": {"url": "http://one"}}))
        == "http://one"
    )


def test_the_version_of_the_reference_need_not_be_the_version_of_the_object() -> None:
    found = service({"address": {"url": "http://one"}}, "serving.knative.dev/v1beta1")

    assert resolve(Destination(REF), found) == "http://one"


def test_a_core_service_is_addressed_by_its_name_in_the_cluster() -> None:
    core = Destination(Reference("v1", "Service", "shop", "weather"))

    assert resolve(core) == "http://weather.shop.svc.cluster.local"
    assert AddressBook([], "example.org").resolve(core) == "http://weather.shop.svc.example.org"


def test_a_core_service_that_publishes_an_address_is_found_there() -> None:
    stand_in = service({"address": {"url": "http://127.0.0.1:9000"}}, "v1")

    assert (
        resolve(Destination(Reference("v1", "Service", "shop", "weather")), stand_in)
        == "http://127.0.0.1:9000"
    )


@pytest.mark.parametrize(
    ("uri", "url"),
    [
        ("/calls", "http://w.shop/calls"),
        ("calls", "http://w.shop/base/calls"),
        ("?a=1", "http://w.shop/base/x?a=1"),
    ],
)
def test_a_uri_beside_a_reference_is_relative_to_it(uri: str, url: str) -> None:
    found = service({"address": {"url": "http://w.shop/base/x"}})

    assert resolve(Destination(REF, uri), found) == url


def test_of_two_objects_with_one_key_the_later_counts() -> None:
    first, later = service({}), service({"address": {"url": "http://127.0.0.1:1"}})

    assert resolve(Destination(REF), first, later) == "http://127.0.0.1:1"


@pytest.mark.parametrize("uri", ["http://elsewhere/", "//elsewhere/x", "//[", "http://["])
def test_an_absolute_uri_beside_a_reference_is_refused(uri: str) -> None:
    found = service({"address": {"url": "http://w.shop"}})

    assert "relative to the ref" in why_not(Destination(REF, uri), found)


def test_a_missing_object_and_one_without_an_address_are_distinguished() -> None:
    assert "Service shop/weather (serving.knative.dev/v1) does not exist" in why_not(Destination(REF))
    assert "publishes no status.address.url" in why_not(Destination(REF), service({}))


@pytest.mark.parametrize(
    "status",
    [
        {"address": "http://x"},
        {"address": {"url": 5}},
        {"address": {"url": ""}},
        {"addresses": [{"name": "x"}], "address": {"url": "http://ignored"}},
        {"addresses": ["http://x"]},
    ],
)
def test_a_status_that_holds_no_url_publishes_none(status: dict[str, Any]) -> None:
    assert "publishes no status.address.url" in why_not(Destination(REF), service(status))


@pytest.mark.parametrize(
    "url", ["weather:80/x", "ftp://x", "http://", "http:///x", "http://[", "http://x:99999"]
)
def test_what_is_no_http_url_is_refused_wherever_it_is(url: str) -> None:
    assert "expected an absolute http or https URL" in why_not(Destination(uri=url))
    assert "expected an absolute http or https URL" in why_not(
        Destination(REF), service({"address": {"url": url}})
    )


def test_a_destination_that_names_nothing_is_refused() -> None:
    assert "neither ref nor uri" in why_not(Destination())


@pytest.mark.parametrize("api_version", ["serving.knative.dev/v1", "v1"])
def test_a_uri_that_names_a_service_leads_to_the_address_that_it_publishes(api_version: str) -> None:
    known = service({"address": {"url": "http://127.0.0.1:8090"}}, api_version)

    def led(uri: str) -> str:
        return resolve(Destination(uri=uri), known)

    assert led("http://weather.shop.svc.cluster.local/a?b=c") == "http://127.0.0.1:8090/a?b=c"
    assert led("http://weather.shop.svc") == "http://127.0.0.1:8090"
    for other in (
        "http://weather.shop.svc.cluster.other/",
        "http://weather.other.svc.cluster.local/",
        "http://weather.shop.svc.cluster.local.example.com/",
        "http://weather/",
    ):
        assert led(other) == other


NOT_READY = {"conditions": [{"type": "Ready", "status": "False", "reason": "Starting", "message": "wait"}]}
URI = "http://weather.shop.svc.cluster.local/calls"


@pytest.mark.parametrize(
    "subscriber", [{"uri": URI}, {"ref": {"apiVersion": "v1", "kind": "Service", "name": "weather"}}]
)
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (NOT_READY, "Service shop/weather is not ready: wait"),
        ({**NOT_READY, "address": {"url": "http://127.0.0.1:8090"}}, ""),
        ({}, ""),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, ""),
    ],
)
def test_a_trigger_waits_for_a_service_that_says_that_it_is_not_ready(
    subscriber: dict[str, Any], status: dict[str, Any], reason: str
) -> None:
    spec = {"broker": "default", "subscriber": subscriber}
    trigger = Resource("eventing.knative.dev/v1", "Trigger", "shop", "weather", spec)

    judged, _ = with_readiness([trigger, service(status, "v1")])

    ready = condition(judged.status, "Ready")
    assert (ready.message if ready else "") == reason
