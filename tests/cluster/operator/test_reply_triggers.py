"""The Triggers for replies that the operator writes, with the rights of its manifests and Knative's own."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.kube import Kube, until
from tests.cluster.operator.account import Account
from tests.cluster.operator.objects import (
    SHIM,
    Document,
    apply,
    becomes,
    broker,
    event_type,
    replies,
    thing,
    trigger,
)
from tests.cluster.operator.process import Running, operator
from tests.cluster.policies import until_in_force

REPLIES, PROGRESS = "default-beckon-replies", "default-beckon-progress"
MESSAGE = "the operator of Beckon may write Triggers with the label"
MANAGED = {"app.kubernetes.io/managed-by": "beckon-operator"}
TO_SHIM = {"broker": "default", "subscriber": {"uri": f"{SHIM}/replies"}}
CREATE = ("create", "-f", "-")


def one_trigger(name: str, spec: Document, labels: dict[str, str]) -> str:
    return json.dumps(thing("eventing.knative.dev/v1", "Trigger", name, spec, labels=labels))


@pytest.fixture
def space(kube: Kube) -> Iterator[Kube]:
    """A namespace of the test's own."""
    name = f"t-replies-{secrets.token_hex(4)}"
    kube.run("create", "namespace", name)
    yield kube.within(name)
    kube.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def running(account: Account, space: Kube) -> Iterator[Running]:
    """An operator on that namespace."""
    with operator(account, space.namespace, reply_triggers=True) as found:
        yield found


def spec_of(kube: Kube, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (kube.find("trigger", name) or {}).get("spec", {})
    return found


def test_a_broker_gets_its_triggers_and_a_tool_is_ready_by_them(running: Running, space: Kube) -> None:
    apply(space, broker())
    until(lambda: spec_of(space, PROGRESS), what="the Triggers")
    space.wait(f"trigger/{REPLIES}", f"trigger/{PROGRESS}", timeout=90)
    owner = space.get("trigger", REPLIES)["metadata"]["ownerReferences"][0]
    assert owner["uid"] == space.get("broker", "default")["metadata"]["uid"]

    apply(space, event_type(), trigger())
    becomes(space, "Answerable", "ReplyTrigger", within=90)
    # What Knative's defaults added is no reason to write again.
    assert running.metric('beckon_operator_trigger_writes_total{action="patch"}') == 0
    assert running.metric('beckon_operator_trigger_writes_total{action="create"}') == 2


def test_a_change_is_put_right_and_a_deleted_one_comes_back(running: Running, space: Kube) -> None:
    apply(space, broker())
    until(lambda: spec_of(space, PROGRESS), what="the Triggers")
    before = spec_of(space, REPLIES)
    change = {
        "spec": {
            "subscriber": {"uri": "http://elsewhere.example"},
            "filters": [{"exact": {"type": "a"}}],
            "delivery": None,
        }
    }
    space.run("patch", "trigger", REPLIES, "--type=merge", "-p", json.dumps(change))
    until(lambda: spec_of(space, REPLIES) == before, what="the spec as before")

    space.run("delete", "trigger", PROGRESS)
    until(lambda: spec_of(space, PROGRESS), what="the Trigger again")


def test_with_its_broker_it_goes_and_for_a_new_broker_it_comes(running: Running, space: Kube) -> None:
    apply(space, broker())
    until(lambda: spec_of(space, REPLIES), what="the Trigger")
    first = space.get("trigger", REPLIES)["metadata"]["uid"]
    space.run("delete", "broker", "default")
    until(lambda: space.find("trigger", REPLIES) is None, what="no Trigger without its Broker")

    apply(space, broker())
    until(lambda: spec_of(space, REPLIES), what="the Trigger of the new Broker")
    assert space.get("trigger", REPLIES)["metadata"]["uid"] != first


def test_a_trigger_of_others_is_left_alone_and_replaces_it(running: Running, space: Kube) -> None:
    apply(space, broker())
    until(lambda: spec_of(space, REPLIES), what="the Trigger")
    apply(space, replies())
    written = space.get("trigger", "beckon-replies")["metadata"]["generation"]
    until(lambda: space.find("trigger", REPLIES) is None, within=90, what="the other Trigger alone")

    assert space.get("trigger", "beckon-replies")["metadata"]["generation"] == written
    assert spec_of(space, PROGRESS)


@pytest.fixture
def home(account: Account) -> Kube:
    """The namespace of the account, with the policy in force."""
    until_in_force(account.home, account.user, *CREATE, stdin=one_trigger("other", TO_SHIM, {}))
    return account.home


def test_the_operator_makes_its_own_triggers(account: Account, home: Kube) -> None:
    words = (*CREATE, "--dry-run=server", f"--as={account.user}")

    home.run(*words, stdin=one_trigger("own", TO_SHIM, MANAGED))


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        pytest.param({}, {}, id="no label"),
        pytest.param({}, {"app.kubernetes.io/managed-by": "Helm"}, id="another label"),
        pytest.param({"subscriber": {"uri": "http://elsewhere.example"}}, MANAGED, id="elsewhere"),
        pytest.param(
            {"subscriber": {"ref": {"apiVersion": "v1", "kind": "Service", "name": "a"}, "uri": "/replies"}},
            MANAGED,
            id="a service",
        ),
        pytest.param(
            {"delivery": {"deadLetterSink": {"uri": "http://elsewhere.example"}}}, MANAGED, id="dead letters"
        ),
    ],
)
def test_another_trigger_is_refused(
    account: Account, home: Kube, spec: Document, labels: dict[str, str]
) -> None:
    stdin = one_trigger("other", {**TO_SHIM, **spec}, labels)
    done = home.attempt(*CREATE, "--dry-run=server", f"--as={account.user}", stdin=stdin)

    assert MESSAGE in done.stderr


def test_a_trigger_of_others_is_neither_changed_nor_deleted(account: Account, home: Kube) -> None:
    apply(home, replies())
    # `kubectl patch` reads first; the operator never does.
    home.run("create", "role", "get-triggers", "--verb=get", "--resource=triggers.eventing.knative.dev")
    name = account.user.removeprefix("system:serviceaccount:")
    home.run("create", "rolebinding", "get-triggers", "--role=get-triggers", f"--serviceaccount={name}")
    label = json.dumps({"metadata": {"labels": MANAGED}})
    words = ("--dry-run=server", f"--as={account.user}")
    changed = home.attempt("patch", "trigger", "beckon-replies", "--type=merge", "-p", label, *words)
    deleted = home.attempt("delete", "trigger", "beckon-replies", *words)

    assert MESSAGE in changed.stderr
    assert MESSAGE in deleted.stderr
    home.run("delete", "trigger", "beckon-replies")
