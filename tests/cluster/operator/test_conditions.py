"""What `kubectl get tools` says about each thing that can be missing."""

import base64
import json
from collections.abc import Iterator

import pytest
import yaml

from beckon_contract.correlation import SigningKey
from tests.cluster.audit import writers
from tests.cluster.kube import Kube, condition, until
from tests.cluster.operator.account import Account
from tests.cluster.operator.objects import (
    PARAMETERS,
    Document,
    apply,
    becomes,
    becomes_all,
    broker,
    event_type,
    knative_service,
    replies,
    thing,
    to_service,
    trigger,
)
from tests.cluster.operator.process import Running, operator

pytestmark = pytest.mark.timeout(240)  # a busy machine, and Knative in between


@pytest.fixture(scope="module", autouse=True)
def running(account: Account) -> Iterator[Running]:
    """One operator for all namespaces."""
    with operator(account) as found:
        until(found.leads, what="an operator that leads")
        yield found


@pytest.fixture
def whole(namespace: Kube) -> Kube:
    """A namespace with a tool that is ready."""
    apply(namespace, broker(), trigger(), replies(), event_type())
    until(lambda: namespace.find("tool", "get.weather"), what="the Tool")
    namespace.wait("tool/get.weather")
    return namespace


def test_kubectl_shows_a_ready_tool_in_one_line(whole: Kube) -> None:
    ready = ["get.weather", "get.weather", "True", "True", "Ready"]
    columns = ["NAME", "TYPE", "READY", "AVAILABLE", "ANSWERING", "REASON", "AGE"]

    # Knative takes back for a moment that a new Trigger is ready.
    until(lambda: whole.run("get", "tools").splitlines()[1].split()[:5] == ready, what="the line of the Tool")

    assert whole.run("get", "tools").splitlines()[0].split() == columns


def test_kubectl_shows_what_happened_to_a_tool(whole: Kube) -> None:
    whole.run("delete", "trigger", "weather")
    becomes(whole, "Ready", "NoTrigger")

    until(lambda: "NoTrigger" in whole.run("describe", "tool", "get.weather"), what="the Event")
    events = whole.run("events", "--for", "tool/get.weather")
    assert "Warning" in events
    assert "write a Trigger" in events


@pytest.mark.parametrize(
    ("documents", "reason", "says"),
    [
        ([broker()], "NoTrigger", "write a Trigger with spec.broker: default"),
        (
            [broker(), trigger(wants="get.wether")],
            "FilterMismatch",
            "attribute type: its filter wants 'get.wether'",
        ),
        (
            [broker(), trigger(filter={"attributes": {"type": "get.weather", "source": "/x"}})],
            "FilterMismatch",
            "attribute source",
        ),
        (
            [
                broker(),
                trigger(subscriber={"ref": {"apiVersion": "v1", "kind": "Service", "name": "missing"}}),
            ],
            "TriggerNotReady",
            "Trigger 'weather' passes it and is not ready",
        ),
        ([broker(), broker("other"), trigger(broker="other")], "Routed", "Broker other, Trigger weather"),
        ([trigger()], "BrokerNotFound", "has no Broker default; create it"),
        (
            [broker(annotations={"eventing.knative.dev/broker.class": "NoSuchBroker"}), trigger()],
            "BrokerNotReady",
            "Broker default is not ready",
        ),
        (
            [broker(), trigger(subscriber=to_service())],
            "ServiceNotFound",
            "Knative Service weather, the subscriber",
        ),
        (
            [broker(), knative_service(), trigger(subscriber=to_service())],
            "ServiceNotReady",
            "has no ready revision",
        ),
    ],
    ids=[
        "none",
        "type",
        "source",
        "subscriber",
        "fine",
        "no-broker",
        "odd-broker",
        "no-service",
        "bad-service",
    ],
)
def test_what_keeps_calls_from_a_service_has_its_reason(
    namespace: Kube, documents: list[Document], reason: str, says: str
) -> None:
    apply(namespace, event_type(), replies(), *documents)

    assert says in becomes(namespace, "Routed", reason)


def test_a_trigger_of_another_broker_or_namespace_is_named(namespace: Kube, kube: Kube) -> None:
    other = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": "other"}
    # A type of its own: Triggers of other tests' namespaces, which are going, would be named too.
    tide, asking = event_type("get.tide", {"reference": other}), trigger("tide", "get.tide")
    apply(namespace, broker(), broker("other"), tide, asking)
    assert "listens to Broker 'default'" in becomes(namespace, "Routed", "OtherBroker", "get.tide")

    name = f"{namespace.namespace}-next"
    kube.run("create", "namespace", name)
    try:
        apply(kube.within(name), broker(), event_type("get.tide"))
        message = becomes(kube.within(name), "Routed", "OtherNamespace", "get.tide")
        assert namespace.namespace in message
        namespace.run("delete", "trigger", "tide")
        becomes(kube.within(name), "Routed", "NoTrigger", "get.tide")
    finally:
        kube.run("delete", "namespace", name, "--wait=false")


def test_a_tool_becomes_ready_again_when_what_was_missing_comes(whole: Kube) -> None:
    whole.run("delete", "broker", "default")
    becomes(whole, "Ready", "BrokerNotFound")

    apply(whole, broker())
    becomes(whole, "Ready", "Ready")


def test_event_types_of_one_name_are_reported_and_both_work(whole: Kube) -> None:
    apply(whole, event_type("get-weather"), trigger("second", "get-weather"))

    message = becomes(whole, "Declared", "NameCollision", "get-weather")
    assert "get.weather" in message
    assert becomes(whole, "Declared", "NameCollision")
    namespace_names = {found["spec"]["name"] for found in whole.list_objects("tools")}
    assert len(namespace_names) == 2
    becomes(whole, "Ready", "Ready", "get-weather")


def test_a_schema_that_cannot_be_used_says_where_and_why(namespace: Kube) -> None:
    apply(namespace, event_type(annotations={"beckon.dev/parameters": "{"}))

    message = becomes(namespace, "Ready", "NotJson")
    assert "metadata.annotations[beckon.dev/parameters]: is not JSON" in message
    assert condition(namespace.find("tool", "get.weather"), "Routed")[:2] == ("Unknown", "NotDeclared")


def test_the_reply_trigger_that_is_missing_is_in_the_message(namespace: Kube) -> None:
    apply(namespace, broker(), trigger(), event_type())
    message = becomes(namespace, "Ready", "NoReplyTrigger")

    namespace.apply(yaml.safe_dump(yaml.safe_load(message.partition("write ")[2])))
    becomes(namespace, "Ready", "Ready")


def test_replies_that_go_elsewhere_or_nowhere_are_reported(namespace: Kube) -> None:
    apply(
        namespace, broker(), trigger(), event_type(), replies(subscriber={"uri": "http://elsewhere.example/"})
    )
    assert "http://elsewhere.example/" in becomes(namespace, "Ready", "RepliesElsewhere")

    missing = {"apiVersion": "v1", "kind": "Service", "name": "beckon-shim-replies", "namespace": "beckon"}
    apply(namespace, replies(subscriber={"ref": missing, "uri": "/replies"}))
    installed = namespace.within("beckon").find("service", "beckon-shim-replies") is not None
    becomes(namespace, "Answerable", "ReplyTrigger" if installed else "ReplyTriggerNotReady")


@pytest.mark.parametrize(
    ("documents", "reason"),
    [
        ([broker(), trigger()], "ToShim"),
        ([broker(sink=None), trigger()], "NoDeadLetterSink"),
        ([broker(sink="http://elsewhere.example/"), trigger()], "OtherSink"),
        ([broker(), trigger(delivery={"retry": 1})], "TriggerOverrides"),
    ],
    ids=["shim", "none", "elsewhere", "overridden"],
)
def test_where_dead_letters_go_is_reported_and_leaves_a_tool_ready(
    namespace: Kube, documents: list[Document], reason: str
) -> None:
    apply(namespace, event_type(), replies(), *documents)

    becomes_all(namespace, {"Ready": "Ready" if reason == "ToShim" else reason, "DeadLettered": reason})
    assert condition(namespace.get("tool", "get.weather"), "Ready")[0] == "True"


def test_a_tool_shows_where_its_trigger_leads_and_how_it_delivers(namespace: Kube) -> None:
    plain = thing("v1", "Service", "weather", {"ports": [{"port": 80}], "selector": {"app": "none"}})
    reference = {"apiVersion": "v1", "kind": "Service", "name": "weather"}
    asking = trigger(subscriber={"ref": reference, "uri": "/calls"})
    apply(namespace, broker(), plain, asking, replies(), event_type())
    tool = becomes_all(namespace, {"Ready": "Ready"})
    assert tool["status"]["routes"] == [
        {
            "trigger": "weather",
            "filter": "type = get.weather",
            "subscriber": {**reference, "namespace": namespace.namespace},
            "address": f"http://weather.{namespace.namespace}.svc.cluster.local",
            "retries": 0,
            "deadLetters": True,
        }
    ]


def test_a_direct_call_is_judged_by_its_service(namespace: Kube) -> None:
    notes = {"beckon.dev/dispatch": "direct", "beckon.dev/parameters": "{}"}
    reference: Document = to_service()["ref"]
    apply(namespace, event_type(spec={"reference": reference}, annotations=notes))
    becomes(namespace, "Ready", "ServiceNotFound")

    apply(namespace, knative_service())
    becomes(namespace, "Ready", "ServiceNotReady")

    plain = {"apiVersion": "v1", "kind": "Service", "name": "weather"}
    apply(namespace, event_type(spec={"reference": plain}, annotations=notes))
    becomes(namespace, "Ready", "Ready")
    address = namespace.get("tool", "get.weather")["spec"]["address"]
    assert address == f"http://weather.{namespace.namespace}.svc.cluster.local"


SCHEMA_DATA = {"schemaData": PARAMETERS}


def test_parameters_outlive_knative_where_kubectl_stored_the_manifest(namespace: Kube) -> None:
    apply(namespace, broker(), trigger(), replies(), event_type(spec=SCHEMA_DATA, annotations={}))
    becomes(namespace, "Ready", "Ready")

    until(lambda: erased(namespace), what="Knative's erasing of schemaData")
    namespace.run("label", "eventtype", "get.weather", "team=a")
    until(
        lambda: namespace.get("tool", "get.weather")["metadata"].get("labels") == {"team": "a"},
        what="the label",
    )
    tool = namespace.get("tool", "get.weather")
    assert set(tool["spec"]["parameters"]["properties"]) == {"place"}
    assert condition(tool, "Declared")[1] == "Declared"
    assert "last-applied" in tool["spec"]["parametersFrom"]


@pytest.mark.parametrize("how", [("create",), ("apply", "--server-side")])
def test_parameters_that_no_one_keeps_are_doubted_while_they_are_remembered(
    namespace: Kube, how: tuple[str, ...]
) -> None:
    document = json.dumps(event_type(spec=SCHEMA_DATA, annotations={}))
    namespace.run(*how, "-f", "-", stdin=document)
    until(lambda: erased(namespace), what="Knative's erasing of schemaData")

    # Seen before they were erased, or not: a matter of milliseconds, and the Tool says which.
    until(
        lambda: said(namespace) in {"ParametersMayBeStale", "ParametersLost"}, what="a word on the parameters"
    )
    message = condition(namespace.find("tool", "get.weather"), "Declared")[2]
    assert "annotation beckon.dev/parameters" in message

    namespace.run("annotate", "eventtype", "get.weather", f"beckon.dev/parameters={PARAMETERS}")
    becomes(namespace, "Declared", "Declared")


def erased(kube: Kube) -> bool:
    return "schemaData" not in kube.get("eventtypes.v1beta2.eventing.knative.dev", "get.weather")["spec"]


def said(kube: Kube) -> str:
    return condition(kube.find("tool", "get.weather"), "Declared")[1]


def test_an_event_type_without_a_description_has_an_event_that_says_so(namespace: Kube) -> None:
    apply(namespace, event_type("silent", {"description": ""}))

    # `kubectl events --for` compares the API version, too, and an EventType has several.
    until(lambda: "NoDescription" in namespace.run("describe", "eventtype", "silent"), what="the Event")
    assert "write one, or set label" in namespace.run("describe", "eventtype", "silent")
    assert namespace.find("tool", "silent") is None


def test_a_tool_says_what_has_been_ready_for_the_next_operator(whole: Kube) -> None:
    until(lambda: len(_last_ready(whole)) == 3, what="Broker, Trigger and reply Trigger")

    found = {(one["kind"], one["name"]) for one in _last_ready(whole)}
    assert {("Broker", "default"), ("Trigger", "weather")} < found


def _last_ready(kube: Kube) -> list[Document]:
    found: list[Document] = kube.get("tool", "get.weather")["status"].get("lastReady", [])
    return found


def test_what_is_no_tool_or_no_more_has_no_tool(whole: Kube) -> None:
    apply(
        whole,
        event_type("silent", {"description": ""}),
        event_type("opted.out", labels={"beckon.dev/tool": "false"}),
    )
    whole.run("label", "eventtype", "get.weather", "beckon.dev/tool=false")
    until(lambda: whole.find("tool", "get.weather") is None, what="the end of the Tool")

    whole.run("label", "eventtype", "get.weather", "beckon.dev/tool-")
    until(lambda: whole.find("tool", "get.weather"), what="the Tool")
    whole.run("delete", "eventtype", "get.weather")
    until(lambda: whole.find("tool", "get.weather") is None, what="the end of the Tool")
    assert whole.list_objects("tools") == []


def test_what_others_do_to_a_tool_is_undone(whole: Kube) -> None:
    whole.run("patch", "tool", "get.weather", "--type=merge", "-p", '{"spec": {"description": "Forged."}}')
    until(
        lambda: whole.get("tool", "get.weather")["spec"]["description"] == "The weather.",
        what="the true Tool",
    )

    whole.run("delete", "tool", "get.weather")
    until(lambda: whole.find("tool", "get.weather"), what="the Tool")


def test_a_tool_that_others_made_is_left_alone(namespace: Kube) -> None:
    spec = {"name": "mine", "description": "Mine."}
    foreign = {
        "apiVersion": "beckon.dev/v1alpha1",
        "kind": "Tool",
        "metadata": {"name": "get.weather"},
        "spec": spec,
    }
    namespace.apply(json.dumps(foreign))
    apply(namespace, event_type(), event_type("next"))
    becomes(namespace, "Ready", "BrokerNotFound", "next")

    assert namespace.get("tool", "get.weather")["spec"] == spec

    namespace.run("delete", "tool", "get.weather")
    becomes(namespace, "Ready", "BrokerNotFound")


def test_the_shims_keys_are_made(account: Account) -> None:
    until(lambda: account.home.find("secret", "beckon-shim-keys"), what="the keys")
    made = account.home.get("secret", "beckon-shim-keys")

    (line,) = base64.b64decode(made["data"]["keys"]).decode().splitlines()
    assert len(SigningKey.parse(line).secret) == 32


def test_nothing_went_wrong_unseen_and_no_key_was_logged(running: Running, account: Account) -> None:
    log = running.log.read_text(encoding="utf-8")
    key = base64.b64decode(account.home.get("secret", "beckon-shim-keys")["data"]["keys"]).decode().strip()

    assert running.metric('beckon_operator_failures_total{what="judge"}') == 0
    assert "Traceback" not in log
    assert key not in log


def test_no_request_tried_to_write_to_what_is_knatives(account: Account, whole: Kube) -> None:
    found = writers(whole, "eventtypes", "triggers", "brokers")

    assert "system:serviceaccount:knative-eventing:eventing-controller" in found
    assert account.user not in found
