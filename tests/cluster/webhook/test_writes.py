"""Writes to the webhook's two objects: the second writer gets a conflict, and nothing else changes."""

import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from beckon_operator.webhook.certificates import new_authority
from beckon_operator.webhook.cluster import StoredSecret, WebhookCluster, WriteConflict
from beckon_operator.webhook.rotation import utc_now
from beckon_sources.api_client import connect
from tests.cluster.kube import Kube

CERTIFICATE = new_authority(timedelta(days=1), utc_now()).certificate_pem


@pytest.fixture
def configuration(kube: Kube) -> Iterator[str]:
    """A configuration of two webhooks that are never called."""
    name = f"t-wh-{secrets.token_hex(4)}"
    one = {
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "clientConfig": {"service": {"name": "none", "namespace": "none"}},
    }
    kind = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
    }
    kube.apply(json.dumps({**kind, "webhooks": [{**one, "name": f"{n}.beckon.dev"} for n in "ab"]}))
    yield name
    kube.run("delete", "mutatingwebhookconfiguration", name)


@pytest.fixture
async def cluster(namespace: Kube, configuration: str) -> AsyncIterator[WebhookCluster]:
    async with await connect("beckon-webhook", os.environ["KUBECONFIG"]) as client:
        yield WebhookCluster(client, namespace.namespace, "certificates", configuration)


async def test_a_secret_is_made_once(cluster: WebhookCluster) -> None:
    missing = await cluster.read_secret()
    assert missing == StoredSecret({})
    await cluster.write_secret({"a": b"1"}, missing)

    with pytest.raises(WriteConflict):
        await cluster.write_secret({"a": b"2"}, missing)

    assert (await cluster.read_secret()).data == {"a": b"1"}


async def test_a_secret_is_changed_by_who_has_seen_its_last_version(
    cluster: WebhookCluster, namespace: Kube
) -> None:
    await cluster.write_secret({"a": b"1", "gone": b"1"}, await cluster.read_secret())
    namespace.run("label", "secret", "certificates", "owner=b")
    before = await cluster.read_secret()
    await cluster.write_secret({"a": b"2", "new": bytes([0, 255])}, before)

    with pytest.raises(WriteConflict):
        await cluster.write_secret({"a": b"3"}, before)

    assert (await cluster.read_secret()).data == {"a": b"2", "new": bytes([0, 255])}
    assert namespace.get("secret", "certificates")["metadata"]["labels"]["owner"] == "b"


async def test_the_trust_of_every_webhook_is_changed_by_who_has_seen_its_last_version(
    cluster: WebhookCluster, kube: Kube, configuration: str
) -> None:
    before = await cluster.read_trust()
    assert before is not None
    assert before.is_exactly(b"")
    # The API server takes nothing for a bundle but certificates.
    await cluster.publish_bundle(CERTIFICATE, before)

    with pytest.raises(WriteConflict):
        await cluster.publish_bundle(CERTIFICATE * 2, before)

    after = await cluster.read_trust()
    assert after is not None
    assert after.is_exactly(CERTIFICATE)
    assert after.holds(CERTIFICATE)
    found = kube.get("mutatingwebhookconfiguration", configuration)["webhooks"]
    assert [one["clientConfig"]["service"]["name"] for one in found] == ["none", "none"]


async def test_a_configuration_that_is_not_there_is_no_failure(namespace: Kube) -> None:
    async with await connect("beckon-webhook", os.environ["KUBECONFIG"]) as client:
        cluster = WebhookCluster(client, namespace.namespace, "certificates", "t-wh-nowhere")

        assert await cluster.read_trust() is None
