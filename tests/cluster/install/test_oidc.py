"""Tokens of an issuer instead of keys: the chart's values, a CA of one's own, and who sees which agent."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import trustme
import uvicorn

from tests.agent.auth.issuer import AUDIENCE, Issuer
from tests.cluster.install.releases import SMALL, Helm
from tests.cluster.kube import until
from tests.cluster.machine.places import places
from tests.cluster.platform import NAMESPACE, Forward

pytestmark = pytest.mark.timeout(600)

CONFIG_MAP = "issuer-ca"
PRIVATE = {
    "apiVersion": "beckon.dev/v1alpha1",
    "kind": "Agent",
    "metadata": {"name": "books"},
    "spec": {"access": {"groups": ["finance"]}},
}


def test_tokens_of_an_issuer_open_what_their_groups_may_use(helm: Helm, tmp_path: Path) -> None:
    kube = helm.kube.within("default")
    if places().kubeconfig != kube.kubeconfig:
        pytest.skip("pods of a cluster elsewhere do not reach an issuer on this machine")
    node = kube.list_objects("nodes")[0]["status"]["addresses"]
    address = next(one["address"] for one in node if one["type"] == "InternalIP")
    with issuing(address, tmp_path) as issuer:
        kube.run("create", "namespace", NAMESPACE)
        at_home = kube.within(NAMESPACE)
        forward = Forward(at_home, "service/beckon-agent", 80)
        try:
            at_home.run("create", "configmap", CONFIG_MAP, f"--from-file=ca.crt={tmp_path / 'ca.crt'}")
            oidc = {"issuer": issuer.url, "audience": AUDIENCE, "caConfigMap": CONFIG_MAP}
            helm.install({**SMALL, "access": {"oidc": oidc}})
            kube.apply(json.dumps(PRIVATE))
            until(lambda: "books" in agents(forward, issuer.token()), within=60, what="the agent books")

            assert agents(forward, issuer.token(groups=["sales"])) == {"beckon"}
            assert refusal(forward, issuer.token(aud="others")).endswith("it is meant for another audience")
            assert refusal(forward, "")
        finally:
            forward.close()
            kube.run("delete", "agent", "books", "--ignore-not-found")
            helm.remove()


def agents(forward: Forward, token: str) -> set[str]:
    """Return the agents that the bearer of a token may use."""
    answer = send_request(forward, token)
    assert answer.status_code == 200, answer.text
    return {entry["id"] for entry in answer.json()["data"]}


def refusal(forward: Forward, token: str) -> str:
    """Return why a request is not admitted."""
    answer = send_request(forward, token)
    assert answer.status_code == 401, answer.text
    return str(answer.json()["error"]["message"])


def send_request(forward: Forward, token: str) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return httpx.get(f"{forward.url}/v1/models", headers=headers, timeout=30)


@contextmanager
def issuing(address: str, folder: Path) -> Iterator[Issuer]:
    """Serve an issuer over TLS at an address of this machine; its CA is `ca.crt` in the folder."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.crt")
    certificate = folder / "issuer.pem"
    authority.issue_cert(address).private_key_and_cert_chain_pem.write_to_path(certificate)
    with socket.socket() as listener:
        listener.bind((address, 0))
        issuer = Issuer(url=f"https://{address}:{listener.getsockname()[1]}")
        config = uvicorn.Config(issuer, ssl_certfile=certificate, log_level="error", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started, what="the issuer")
            yield issuer
        finally:
            server.should_exit = True
            thread.join()
