"""What the account of the webhook may change of its own configuration: the certificate authority, no more."""

import base64
import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cluster.kube import Kube, until
from tests.cluster.policies import KINDS, until_in_force
from tests.cluster.webhook.hook import moved_objects
from tests.cluster.webhook.test_writes import CERTIFICATE

MESSAGE = "the webhook of Beckon may change clientConfig.caBundle"
SECRET_MESSAGE = "the webhook of Beckon may write its own Secret"
CA = base64.b64encode(CERTIFICATE).decode()
NEVER_CALLED = {"matchLabels": {"beckon.dev/never": "called"}}
EVERYTHING = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}


def add(path: str, value: object) -> dict[str, object]:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> dict[str, object]:
    return {"op": "remove", "path": path}


def another_webhook(name: str = "more.beckon.dev") -> dict[str, object]:
    server = {"url": "https://evil.example/"}
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": server,
        "objectSelector": NEVER_CALLED,
    }


HOOK = "/webhooks/0"
SERVICE = f"{HOOK}/clientConfig/service"
CHANGES: dict[str, list[dict[str, object]]] = {
    "every rule": [add(f"{HOOK}/rules", [EVERYTHING])],
    "one rule more": [add(f"{HOOK}/rules/-", EVERYTHING)],
    "another operation": [add(f"{HOOK}/rules/0/operations/-", "DELETE")],
    "failurePolicy": [add(f"{HOOK}/failurePolicy", "Fail")],
    "matchPolicy": [add(f"{HOOK}/matchPolicy", "Equivalent")],
    "sideEffects": [add(f"{HOOK}/sideEffects", "NoneOnDryRun")],
    "timeoutSeconds": [add(f"{HOOK}/timeoutSeconds", 30)],
    "reinvocationPolicy": [add(f"{HOOK}/reinvocationPolicy", "IfNeeded")],
    "admissionReviewVersions": [add(f"{HOOK}/admissionReviewVersions", ["v1", "v1beta1"])],
    "no conditions": [remove(f"{HOOK}/matchConditions")],
    "another condition": [add(f"{HOOK}/matchConditions/0/expression", "true")],
    "namespaceSelector": [add(f"{HOOK}/namespaceSelector", {"matchLabels": {"a": "b"}})],
    "objectSelector": [add(f"{HOOK}/objectSelector", {"matchLabels": {"a": "b"}})],
    "url": [remove(SERVICE), add(f"{HOOK}/clientConfig/url", "https://evil.example/")],
    "service": [add(f"{SERVICE}/name", "evil")],
    "namespace of the service": [add(f"{SERVICE}/namespace", "default")],
    "path": [add(f"{SERVICE}/path", "/evil")],
    "port": [add(f"{SERVICE}/port", 8443)],
    "name of the webhook": [add(f"{HOOK}/name", "evil.beckon.dev")],
    "a second webhook": [add("/webhooks/-", another_webhook())],
    "a webhook before": [add("/webhooks/0", another_webhook())],
    "no webhook": [remove(HOOK)],
    "no webhooks": [remove("/webhooks")],
    "a label": [add("/metadata/labels/evil", "true")],
    "another label": [add("/metadata/labels/app.kubernetes.io~1name", "evil")],
    "no label": [remove("/metadata/labels/app.kubernetes.io~1name")],
    "annotations": [add("/metadata/annotations/evil", "true")],
    "finalizers": [add("/metadata/finalizers", ["beckon.dev/never"])],
    "owners": [
        add(
            "/metadata/ownerReferences",
            [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": "none",
                    "uid": "00000000-0000-0000-0000-000000000000",
                }
            ],
        )
    ],
    "the authority and a rule": [
        add(f"{HOOK}/clientConfig/caBundle", CA),
        add(f"{HOOK}/rules/-", EVERYTHING),
    ],
}


@dataclass(frozen=True)
class Configuration:
    """The configuration of a webhook that is never called, with the account that may patch it."""

    kube: Kube
    name: str

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{self.kube.namespace}:beckon-webhook"

    def patch(self, changes: list[dict[str, object]]) -> str:
        """Patch it as the account; return what the API server has against it."""
        words = ("patch", "mutatingwebhookconfiguration", self.name, "--type=json", "-p", json.dumps(changes))
        return self.kube.attempt(*words, f"--as={self.user}").stderr

    def stored(self) -> dict[str, Any]:
        return self.kube.get("mutatingwebhookconfiguration", self.name)


@pytest.fixture(scope="module")
def configuration(kube: Kube) -> Iterator[Configuration]:
    """Everything of the webhook that needs no pod."""
    namespace = f"t-wp-{secrets.token_hex(4)}"
    name = f"{namespace}.beckon.dev"
    kinds = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", *KINDS)
    objects = [
        one
        for one in moved_objects(namespace, name, {})
        if one["kind"] in kinds or one["kind"] == "MutatingWebhookConfiguration"
    ]
    kube.run("create", "namespace", namespace)
    within = kube.within(namespace)
    try:
        within.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
        found = Configuration(within, name)
        rule = json.dumps([add(f"{HOOK}/timeoutSeconds", 3)])
        words = ("patch", "mutatingwebhookconfiguration", name, "--type=json", "-p", rule)
        until_in_force(within, found.user, *words)
        until_in_force(within, found.user, "create", "-f", "-", stdin=secret("another"))
        yield found
    finally:
        for one in objects:
            if "namespace" not in one["metadata"]:
                kube.run("delete", one["kind"], one["metadata"]["name"], "--ignore-not-found")
        kube.run("delete", "namespace", namespace, "--wait=false")


def secret(name: str, kind: str = "Opaque") -> str:
    fields = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": {"name": name}}
    return json.dumps({**fields, "stringData": {"username": "a", "password": "b"}})


def test_the_authority_may_be_changed(configuration: Configuration) -> None:
    before = configuration.stored()

    assert configuration.patch([add(f"{HOOK}/clientConfig/caBundle", CA)]) == ""

    after = configuration.stored()
    assert after["webhooks"][0]["clientConfig"].pop("caBundle") == CA
    before["webhooks"][0]["clientConfig"].pop("caBundle", None)
    assert after["webhooks"] == before["webhooks"]


@pytest.mark.parametrize("change", CHANGES)
def test_nothing_else_may_be_changed(configuration: Configuration, change: str) -> None:
    before = configuration.stored()

    refusal = configuration.patch(CHANGES[change])

    assert MESSAGE in refusal
    assert configuration.stored() == before


def test_even_with_more_rights_it_neither_makes_nor_removes_a_configuration(
    configuration: Configuration,
) -> None:
    kube, name = configuration.kube, f"{configuration.name}.more"
    rights = ("--verb=create,delete,update", "--resource=mutatingwebhookconfigurations")
    kube.run("create", "clusterrole", name, *rights)
    try:
        kube.run(
            "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--user={configuration.user}"
        )
        as_account = f"--as={configuration.user}"
        can = ("auth", "can-i", "delete", "mutatingwebhookconfigurations", as_account)
        until(lambda: kube.attempt(*can).returncode == 0, what="the rights")
        other = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [another_webhook()],
        }

        made = kube.attempt("create", as_account, "-f", "-", stdin=json.dumps(other))
        removed = kube.attempt(
            "delete", "mutatingwebhookconfiguration", configuration.name, as_account, "--wait=false"
        )

        assert MESSAGE in made.stderr
        assert MESSAGE in removed.stderr
        assert configuration.stored()["webhooks"]
    finally:
        kube.run("delete", "clusterrolebinding,clusterrole", name, "--ignore-not-found")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("another", "Opaque"),
        ("beckon-webhook-tls", "kubernetes.io/basic-auth"),
        ("beckon-shim-keys", "Opaque"),
    ],
)
def test_it_makes_no_secret_but_its_own(configuration: Configuration, name: str, kind: str) -> None:
    words = ("create", f"--as={configuration.user}", "-f", "-")

    assert SECRET_MESSAGE in configuration.kube.attempt(*words, stdin=secret(name, kind)).stderr
    configuration.kube.run(*words, "--dry-run=server", stdin=secret("beckon-webhook-tls"))


def test_others_change_the_configuration_as_before(configuration: Configuration) -> None:
    words = ("patch", "mutatingwebhookconfiguration", configuration.name, "--type=json", "--dry-run=server")

    for changes in CHANGES.values():
        if "/webhooks" not in {change["path"] for change in changes}:
            configuration.kube.run(*words, "-p", json.dumps(changes))
