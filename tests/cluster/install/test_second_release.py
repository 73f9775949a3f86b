"""A second release in one cluster is refused with the reason, before an object is changed."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cluster.chart.charts import CHART, KUBERNETES, Chart, Refused
from tests.cluster.install.releases import SMALL, Helm, remains

ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles/beckon-operator"
Objects = Mapping[str, Mapping[str, object]]


def resource_list(version: str, *resources: Mapping[str, object]) -> dict[str, object]:
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [*resources]}


DISCOVERY: Objects = {
    "/version": {"major": "1", "minor": "34", "gitVersion": f"v{KUBERNETES}"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": resource_list("v1"),
    "/apis": {
        "kind": "APIGroupList",
        "apiVersion": "v1",
        "groups": [
            {
                "name": "rbac.authorization.k8s.io",
                "versions": [{"groupVersion": "rbac.authorization.k8s.io/v1", "version": "v1"}],
                "preferredVersion": {"groupVersion": "rbac.authorization.k8s.io/v1", "version": "v1"},
            }
        ],
    },
    "/apis/rbac.authorization.k8s.io/v1": resource_list(
        "rbac.authorization.k8s.io/v1",
        {
            "name": "clusterroles",
            "singularName": "clusterrole",
            "namespaced": False,
            "kind": "ClusterRole",
            "verbs": ["get"],
        },
    ),
}


@contextmanager
def cluster_with(objects: Objects) -> Iterator[str]:
    """Serve what Helm reads of a cluster before it renders a chart: resources, and these objects."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            found = {**DISCOVERY, **objects}.get(path)
            missing = {"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(found or missing).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 the name is the base class's
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def role_of(release: str, namespace: str) -> Objects:
    annotations = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
    metadata = {"name": "beckon-operator", "annotations": annotations}
    return {ROLE: {"kind": "ClusterRole", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}}


@pytest.fixture
def rendered(chart: Chart) -> Callable[[Objects], str]:
    """Renders the chart as release `beckon` in namespace `beckon` of a cluster with some objects."""

    def render(objects: Objects) -> str:
        with cluster_with(objects) as url:
            words = ("template", "beckon", str(CHART), "--namespace", "beckon", "--dry-run=server")
            options = ("--kube-version", KUBERNETES, "--kube-apiserver", url)
            return chart.run(*words, *options, given={})

    return render


@pytest.mark.parametrize(
    "objects",
    [
        {},
        role_of("beckon", "beckon"),
        {ROLE: {"kind": "ClusterRole", "metadata": {"name": "beckon-operator"}}},
    ],
    ids=["an empty cluster", "the same release", "applied without Helm, which Helm itself refuses"],
)
def test_the_only_release_is_rendered(rendered: Callable[[Objects], str], objects: Objects) -> None:
    assert "kind: MutatingWebhookConfiguration" in rendered(objects)


@pytest.mark.parametrize(("release", "namespace"), [("another", "beckon"), ("beckon", "team-a")])
def test_a_release_beside_another_is_refused(
    rendered: Callable[[Objects], str], release: str, namespace: str
) -> None:
    with pytest.raises(Refused) as refused:
        rendered(role_of(release, namespace))

    assert f"as the release {release} in namespace {namespace}, and one cluster has one" in str(refused.value)
    assert f"helm uninstall {release} --namespace {namespace}" in str(refused.value)


@pytest.mark.timeout(900)
def test_a_second_install_changes_no_object(helm: Helm) -> None:
    helm.install(SMALL)
    try:
        before = remains(helm.kube, "clusterroles", "validatingadmissionpolicies", "namespaces", "secrets")

        with pytest.raises(AssertionError, match="as the release beckon in namespace beckon"):
            helm.run("install", "second", str(CHART), "--namespace", "beckon-second", "--create-namespace")

        after = remains(helm.kube, "clusterroles", "validatingadmissionpolicies", "namespaces", "secrets")
        assert after == before
    finally:
        helm.remove()
