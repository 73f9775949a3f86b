"""The webhook's certificates, replicas and rights, while EventTypes are written all the time."""

import json
import secrets
import time
from collections.abc import Iterator

import pytest

from tests.cluster.kube import Kube, until
from tests.cluster.webhook.hook import COPY, TEXT, Hook, deployed, event_type, serial

DAY = 86_400  # seconds
BATCH = 20

pytestmark = pytest.mark.timeout(180)  # each waits for a webhook of its own


@pytest.fixture
def hasty(namespace: Kube) -> Iterator[Hook]:
    """A webhook whose certificates live for seconds."""
    lives = {"certificate_days": str(15 / DAY), "authority_days": str(45 / DAY)}
    with deployed(namespace, poll_seconds="1", **lives) as found:
        yield found


def keeps(hook: Hook, count: int = 1) -> bool:
    """Create EventTypes one after the other; whether each got its copy at once."""
    items = [json.loads(event_type(f"weather-{secrets.token_hex(4)}", TEXT)) for _ in range(count)]
    written = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    shown = "go-template={{.metadata.annotations}}{{println}}"
    lines = hook.kube.run("create", "-o", shown, "-f", "-", stdin=written).splitlines()
    return [f"{COPY}:{TEXT}" in line for line in lines] == [True] * count


@pytest.mark.timeout(300)
def test_certificates_and_authorities_rotate_and_no_event_type_is_missed(hasty: Hook) -> None:
    serving, authorities, sizes = set[int](), set[int](), set[int]()
    failed, answered, written = hasty.failed_open(), hasty.answered(), 0

    deadline = time.monotonic() + 200
    while len(authorities) < 3 and time.monotonic() < deadline:
        assert keeps(hasty, BATCH)
        written += BATCH
        held = hasty.secret()
        serving.add(serial(held["tls.crt"]))
        authorities.add(serial(held["ca.crt"]))
        sizes.add(hasty.bundle().count(b"BEGIN CERTIFICATE"))

    assert len(authorities) >= 3
    assert len(serving) > len(authorities)
    assert sizes == {1, 2}
    assert hasty.failed_open() == failed
    assert hasty.answered() - answered == written


def test_replicas_are_replaced_and_no_event_type_is_missed(hook: Hook) -> None:
    failed = hook.failed_open()
    before = hook.kube.get("deployment", "beckon-webhook")["metadata"]["generation"]
    hook.kube.run("rollout", "restart", "deployment/beckon-webhook")

    def replaced() -> bool:
        assert keeps(hook, BATCH)
        status = hook.kube.get("deployment", "beckon-webhook")["status"]
        new = status.get("observedGeneration", 0) > before and status.get("updatedReplicas") == 2
        pods = hook.kube.list_objects("pods", "app.kubernetes.io/component=webhook")
        return bool(new and len(pods) == 2 and status.get("availableReplicas") == 2)

    until(replaced, within=150, what="the roll-out")
    assert hook.failed_open() == failed


def test_without_the_webhook_event_types_are_written_as_they_are(hook: Hook) -> None:
    hook.kube.run("scale", "deployment/beckon-webhook", "--replicas=0")
    until(lambda: not hook.kube.list_objects("pods", "app.kubernetes.io/component=webhook"), within=90)
    failed, began = hook.failed_open(), time.monotonic()

    hook.kube.apply(event_type("weather", TEXT))

    assert time.monotonic() - began < 10
    assert hook.event_type("weather")["spec"]["type"] == "weather"
    assert hook.failed_open() > failed
    hook.kube.run("scale", "deployment/beckon-webhook", "--replicas=2")
    hook.until_ready()
    assert keeps(hook)


def test_a_bundle_that_others_reset_is_put_back(hook: Hook) -> None:
    before = hook.bundle()
    reset = '[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]'
    hook.kube.run("patch", "mutatingwebhookconfiguration", hook.name, "--type=json", "-p", reset)

    until(lambda: hook.bundle() == before, what="the bundle")
    until(lambda: keeps(hook), what="an answer")


@pytest.mark.parametrize("flags", [(), ("--server-side", "--force-conflicts")], ids=["client", "server"])
def test_applying_the_manifests_again_costs_no_trust(hook: Hook, flags: tuple[str, ...]) -> None:
    before, failed = hook.bundle(), hook.failed_open()

    hook.kube.apply(hook.manifest, *flags)

    assert hook.bundle() == before
    assert keeps(hook)
    assert hook.failed_open() == failed


@pytest.mark.parametrize("how", ["emptied", "broken", "deleted"])
def test_a_secret_that_others_spoilt_is_made_anew(hook: Hook, how: str) -> None:
    before = serial(hook.secret()["ca.crt"])
    match how:
        case "deleted":
            hook.kube.run("delete", "secret", "beckon-webhook-tls")
        case "broken":
            hook.kube.run("patch", "secret", "beckon-webhook-tls", "-p", '{"stringData": {"tls.key": "x"}}')
        case _:
            gone = '[{"op": "remove", "path": "/data"}]'
            hook.kube.run("patch", "secret", "beckon-webhook-tls", "--type=json", "-p", gone)

    def renewed() -> bool:
        authority = hook.secret().get("ca.crt")
        return authority is not None and serial(authority) != before

    until(renewed, what="a new authority")
    until(lambda: keeps(hook), what="an answer")


def test_it_may_do_no_more_than_look_after_its_own_objects(hook: Hook) -> None:
    def may(verb: str, *what: str) -> bool:
        account = f"system:serviceaccount:{hook.kube.namespace}:beckon-webhook"
        return hook.kube.attempt("auth", "can-i", verb, *what, f"--as={account}").returncode == 0

    assert may("get", "secret/beckon-webhook-tls")
    assert may("patch", "secret/beckon-webhook-tls")
    assert may("patch", f"mutatingwebhookconfiguration/{hook.name}")
    for verb in ("get", "list", "watch", "patch", "update", "delete"):
        assert not may(verb, "secret/another")
        assert not may(verb, "mutatingwebhookconfiguration/another")
        assert not may(verb, "eventtypes")
        assert not may(verb, "pods")
    assert not may("list", "secrets")
    assert not may("delete", "secret/beckon-webhook-tls")
    assert not may("delete", f"mutatingwebhookconfiguration/{hook.name}")
