"""HTTPS with a certificate of cert-manager: issued with the release, and renewed without a restart."""

import json
import ssl
from base64 import b64decode
from collections.abc import Iterator

import httpx
import pytest

from tests.cluster.chart.charts import Chart, Refused
from tests.cluster.install.releases import SMALL, Helm, restarts
from tests.cluster.kube import Kube, until
from tests.cluster.platform import NAMESPACE, Forward, first_key

pytestmark = pytest.mark.timeout(600)

ISSUER = {"issuer": {"name": "own"}, "hosts": ["agent.example.com"]}
SERVICE = f"beckon-agent.{NAMESPACE}.svc.cluster.local"
SECRET = "beckon-agent-tls"
PORT = 443
GROUP = "cert-manager.io/v1"
# As for a company of its own: a root that signs itself, and an issuer with that root.
AUTHORITY = [
    {"apiVersion": GROUP, "kind": "Issuer", "metadata": {"name": "root"}, "spec": {"selfSigned": {}}},
    {
        "apiVersion": GROUP,
        "kind": "Certificate",
        "metadata": {"name": "root"},
        "spec": {
            "isCA": True,
            "commonName": "own authority",
            "secretName": "root",
            "privateKey": {"algorithm": "ECDSA", "rotationPolicy": "Always"},
            "issuerRef": {"name": "root", "kind": "Issuer"},
        },
    },
    {
        "apiVersion": GROUP,
        "kind": "Issuer",
        "metadata": {"name": "own"},
        "spec": {"ca": {"secretName": "root"}},
    },
]
READY = f"""
import ssl, urllib.request
trust = ssl.create_default_context(cafile="/etc/beckon/tls/ca.crt")
print(urllib.request.urlopen("https://{SERVICE}/readyz", context=trust, timeout=20).status)
"""


@pytest.fixture(scope="module")
def home(helm: Helm) -> Iterator[Kube]:
    """The namespace of a release with the issuer."""
    kube = helm.kube.within(NAMESPACE)
    helm.kube.run("create", "namespace", NAMESPACE)
    for each in AUTHORITY:
        kube.apply(json.dumps(each))
    kube.wait("issuer/own", timeout=90)
    helm.install({**SMALL, "agent": {"replicas": 1, "tls": ISSUER}})
    yield kube
    helm.remove()


@pytest.fixture(scope="module")
def forward(home: Kube) -> Iterator[Forward]:
    forward = Forward(home, "service/beckon-agent", PORT)
    yield forward
    forward.close()


def trust_of(home: Kube) -> ssl.SSLContext:
    """Return a client's context that trusts the issuer alone."""
    return ssl.create_default_context(cadata=read_secret(home, "ca.crt"))


def read_secret(home: Kube, key: str) -> str:
    return b64decode(home.get("secret", SECRET)["data"][key]).decode()


def get(home: Kube, forward: Forward, name: str) -> httpx.Response:
    """Read the models under a name of the agent."""
    with httpx.Client(verify=trust_of(home), timeout=30) as client:
        return client.get(
            f"{forward.url.replace('http:', 'https:')}/v1/models",
            headers={"host": name, "authorization": f"Bearer {first_key(home)}"},
            extensions={"sni_hostname": name},
        )


def served_certificate(forward: Forward) -> str:
    port = httpx.URL(forward.url).port
    assert port is not None
    return ssl.get_server_certificate(("127.0.0.1", port))


@pytest.mark.parametrize("name", [SERVICE, f"beckon-agent.{NAMESPACE}.svc", "agent.example.com"])
def test_the_agent_answers_under_each_name_of_its_certificate(
    home: Kube, forward: Forward, name: str
) -> None:
    answer = get(home, forward, name)

    assert (answer.status_code, [one["id"] for one in answer.json()["data"]]) == (200, ["beckon"])


def test_another_name_is_not_trusted(home: Kube, forward: Forward) -> None:
    with pytest.raises(httpx.ConnectError, match="not valid for 'beckon-shim'"):
        get(home, forward, "beckon-shim")


def test_pods_reach_it_through_the_service(home: Kube) -> None:
    assert home.run("exec", "deployment/beckon-agent", "--", "python", "-c", READY).strip() == "200"


def test_a_renewed_certificate_is_served_without_a_restart(home: Kube, forward: Forward) -> None:
    before, pods = served_certificate(forward), restarts(home)
    home.run("delete", "secret", SECRET)
    until(lambda: home.find("secret", SECRET) is not None, within=60, what="the new Secret")
    # The kubelet looks at a pod's Secrets once a minute, and when the pod changes.
    home.run("annotate", "pod", "--selector=app.kubernetes.io/component=agent", "test.beckon.dev/looked=now")

    until(lambda: served_certificate(forward) != before, within=150, what="the new certificate")

    assert served_certificate(forward).strip() in read_secret(home, "tls.crt")
    assert get(home, forward, SERVICE).status_code == 200
    assert restarts(home) == pods


def test_a_secret_of_your_own_needs_no_cert_manager(chart: Chart) -> None:
    found = chart.render({"agent": {"tls": {"existingSecret": "mine"}}})

    pod = found["Deployment", NAMESPACE, "beckon-agent"]["spec"]["template"]["spec"]
    assert [one["secret"]["secretName"] for one in pod["volumes"] if one["name"] == "tls"] == ["mine"]
    assert "Certificate" not in {kind for kind, _, _ in found}


def test_a_secret_beside_an_issuer_is_refused(chart: Chart) -> None:
    with pytest.raises(Refused, match="or an issuer of cert-manager, which makes one"):
        chart.render({"agent": {"tls": {"existingSecret": "mine", **ISSUER}}})
