"""What the operator's account may write of statuses: Brokers of its class, and Triggers with its mark."""

import json
import ssl
from base64 import b64decode
from collections.abc import Iterator

import httpx
import pytest

from beckon_sources.api_types import object_path
from tests.cluster.kube import Kube, until
from tests.cluster.operator.account import Account
from tests.cluster.operator.objects import apply, thing
from tests.patience import PATIENCE

EVENTING = "eventing.knative.dev/v1"
CLASS = "eventing.knative.dev/broker.class"
MESSAGE = "the operator of Beckon may write the status of Brokers of the class Beckon"
MARKED = {"annotations": {"beckon.dev/broker-class": "Beckon"}}


class StatusWriter:
    """Patches statuses in a namespace by the account of the operator, and changes nothing."""

    def __init__(self, account: Account, namespace: str) -> None:
        config = json.loads(account.kubeconfig.read_text("utf-8"))
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        authority = b64decode(cluster["certificate-authority-data"]).decode()
        self.client = httpx.Client(
            base_url=cluster["server"],
            verify=ssl.create_default_context(cadata=authority),
            headers={
                "authorization": f"Bearer {user['token']}",
                "content-type": "application/merge-patch+json",
            },
            timeout=PATIENCE,
        )
        self._namespace = namespace

    def write(self, plural: str, name: str, **status: object) -> tuple[int, str]:
        """Return the status and the message of the API server's answer."""
        path = f"{object_path(EVENTING, plural, self._namespace, name)}/status"
        answer = self.client.patch(path, params={"dryRun": "All"}, content=json.dumps({"status": status}))
        return answer.status_code, str(answer.json().get("message", ""))


@pytest.fixture
def writer(account: Account, namespace: Kube) -> Iterator[StatusWriter]:
    """A namespace with Brokers of two classes and a Trigger, and the policy in force."""
    apply(
        namespace,
        thing(EVENTING, "Broker", "ours", {}, annotations={CLASS: "Beckon"}),
        thing(EVENTING, "Broker", "other", {}, annotations={CLASS: "Another"}),
        thing(EVENTING, "Trigger", "t", {"broker": "other", "subscriber": {"uri": "http://a.example"}}),
    )
    writer = StatusWriter(account, namespace.namespace)
    with writer.client:
        until(lambda: writer.write("brokers", "other", observedGeneration=1)[0] == 403, what="the policy")
        yield writer


def test_the_operator_writes_the_statuses_of_its_class(writer: StatusWriter) -> None:
    assert writer.write("brokers", "ours", observedGeneration=1) == (200, "")
    assert writer.write("triggers", "t", **MARKED) == (200, "")


def test_another_status_is_refused(writer: StatusWriter) -> None:
    other = writer.write("brokers", "other", observedGeneration=1)
    unmarked = writer.write("triggers", "t", observedGeneration=1)

    assert (other[0], MESSAGE in other[1]) == (403, True)
    assert (unmarked[0], MESSAGE in unmarked[1]) == (403, True)


def test_others_write_statuses_as_before(writer: StatusWriter, namespace: Kube) -> None:
    words = ("--subresource=status", "--type=merge", '--patch={"status": {"observedGeneration": 1}}')
    namespace.run("patch", "broker", "other", *words, "--dry-run=server")
