"""Who may call: a pod of another namespace may not, though no network policy stops it."""

import base64
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster.kube import Kube, until
from tests.cluster.shim.load import load
from tests.cluster.shim.stack import AGENT_IMAGE, SHIM

_READ = 12  # seconds in which a shim reads a file of keys that changed

# Posts one call to the URL in its arguments, signed with the keys there where there are some.
CALLER = """
import sys, time, urllib.error, urllib.request
from beckon_contract.correlation import sign_request
from beckon_contract.correlation import Keyring
url, path, keys = sys.argv[1:]
body = b'{"text": "hello", "seconds": 0}'
headers = {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/t", "ce-type": "echo"}
headers["content-type"] = "application/json"
if keys:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    headers["authorization"] = sign_request(Keyring.parse(keys), path, raw, body, time.time())
request = urllib.request.Request(url + path, body, headers)
try:
    with urllib.request.urlopen(request, timeout=30) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""


@pytest.fixture
def stranger(namespace: Kube) -> Iterator[Kube]:
    """Another namespace with a pod that can reach the shim."""
    container = {"name": "stranger", "image": AGENT_IMAGE, "command": ["sleep", "infinity"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "stranger"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{**container, "imagePullPolicy": "IfNotPresent"}],
        },
    }
    namespace.apply(json.dumps(pod))
    namespace.wait("pod/stranger", timeout=120)
    yield namespace
    namespace.run("delete", "pod", "stranger", "--wait=false")


def posted(stranger: Kube, shim: Kube, keys: str = "") -> tuple[int, Any]:
    """Post a call from the stranger's pod; return status and document of the answer."""
    url, path = f"http://beckon-shim.{shim.namespace}.svc.cluster.local", f"/{shim.namespace}/default"
    said = stranger.run("exec", "stranger", "--", "python", "-c", CALLER, url, path, keys)
    status, _, body = said.partition(" ")
    return int(status), json.loads(body)


def test_a_call_from_another_namespace_is_refused(shim: Kube, stranger: Kube) -> None:
    status, problem = posted(stranger, shim)

    assert status == 401
    assert problem["type"].endswith("/unauthenticated")
    assert "BECKON_SHIM_KEYS_FILE" in problem["detail"]


def test_so_is_one_that_is_signed_with_another_key(shim: Kube, stranger: Kube) -> None:
    status, problem = posted(stranger, shim, "00" * 32)

    assert status == 401
    assert "no key of the shim" in problem["detail"]


def test_the_same_call_with_the_keys_of_the_shim_is_answered(shim: Kube, stranger: Kube) -> None:
    """What refuses the others is their credential, and not where they are."""
    keys = base64.b64decode(shim.get("secret", "beckon-shim-keys")["data"]["keys"]).decode()

    assert posted(stranger, shim, keys) == (200, "hello")


def test_keys_are_replaced_while_calls_go_on(shim: Kube) -> None:
    """The new key second, then first, then alone: at no time is a call refused."""
    secret = shim.get("secret", "beckon-shim-keys")["data"]["keys"]
    old, new = base64.b64decode(secret).decode().strip(), "ab" * 32

    with load(shim, workers=4, wait=20, client="agent") as calls:
        for keys in (f"{old}\n{new}", f"{new}\n{old}", new):
            shim.run("patch", "secret", "beckon-shim-keys", "-p", json.dumps({"stringData": {"keys": keys}}))
            # The kubelet looks at a pod's volumes once a minute, and at once where the pod changes.
            shim.run(
                "annotate", "pods", "--all", "--overwrite", f"beckon.dev/tests-keys={len(keys)}-{keys[:4]}"
            )
            until(partial(is_everywhere, shim, keys), within=150, what="the keys in every pod")
            time.sleep(_READ)
            calls.go_on(40)

    assert calls.failed() == {}, calls.samples


def is_everywhere(shim: Kube, keys: str) -> bool:
    return all(seen(shim, pod) == keys for pod in readers(shim))


def readers(shim: Kube) -> list[str]:
    pods = [
        *shim.list_objects("pods", SHIM),
        *shim.list_objects("pods", "app=caller"),
    ]
    return [pod["metadata"]["name"] for pod in pods]


def seen(shim: Kube, pod: str) -> str:
    """Return the keys as a pod's volume has them."""
    place = "/secret/keys" if pod.startswith("caller") else "/etc/beckon/keys/keys"
    return shim.run("exec", pod, "--", "cat", place).strip()
