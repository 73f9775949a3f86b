"""The Kubernetes programs as plain processes: how each is started, and when it counts as started."""

import base64
import json
import socket
from pathlib import Path

from tests.cluster.machine import daemons, settings
from tests.cluster.machine.commands import ClusterError, output, wait_until
from tests.cluster.machine.places import (
    API_PORT,
    ETCD_PORT,
    NAME,
    NODE,
    NODE_ADDRESS,
    SERVICE_NETWORK,
    Places,
)

API_ADDRESS = f"https://{NODE_ADDRESS}:{API_PORT}"
ETCD_ADDRESS = f"https://127.0.0.1:{ETCD_PORT}"
PEER_ADDRESS = f"https://127.0.0.1:{ETCD_PORT + 1}"


def kubectl(places: Places, *arguments: str | Path, stdin: bytes | None = None) -> str:
    """Run the cluster's kubectl as its administrator and return what it printed."""
    return output([places.kubectl, "--kubeconfig", places.kubeconfig, *arguments], stdin=stdin)


def answers(places: Places, path: str = "/readyz") -> bool:
    """Whether the API server says that it is ready."""
    try:
        return kubectl(places, "get", "--raw", path, "--request-timeout=2s") == "ok"
    except ClusterError:
        return False


def listens(port: int) -> bool:
    """Whether something takes connections there on this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def start_control_plane(places: Places) -> None:
    """Start etcd, API server, controller manager and scheduler; return when the API server is ready."""
    for user in ("controller-manager", "scheduler", "proxy", "kubelet"):
        write_kubeconfig(places, user, places.certificates / f"{user}.kubeconfig")
    write_kubeconfig(places, "admin", places.kubeconfig)
    daemons.start(places, "etcd", etcd(places))
    daemons.wait_until_up(places, "etcd", lambda: listens(ETCD_PORT), 30)
    daemons.start(places, "kube-apiserver", api_server(places))
    daemons.wait_until_up(places, "kube-apiserver", lambda: answers(places), 90)
    for name, command in (("kube-controller-manager", controller_manager), ("kube-scheduler", scheduler)):
        daemons.start(places, name, command(places))


def start_node(places: Places) -> None:
    """Start kubelet and kube-proxy; return when the node is ready for pods."""
    folder = places.state / "kubelet"
    folder.mkdir()
    resolver = folder / "resolv.conf"
    resolver.write_text("")  # pods ask the cluster's DNS alone; it knows no outside names
    kubelet_settings, proxy_settings = folder / "config.json", folder / "proxy.json"
    kubelet_settings.write_text(json.dumps(settings.kubelet(places, resolver)))
    proxy_settings.write_text(json.dumps(settings.proxy(places)))
    program = places.program("kubernetes", "kubelet")
    daemons.start(
        places,
        "kubelet",
        [
            program,
            f"--config={kubelet_settings}",
            f"--kubeconfig={places.certificates / 'kubelet.kubeconfig'}",
            f"--root-dir={folder}",
            f"--hostname-override={NODE}",
            f"--node-ip={NODE_ADDRESS}",
        ],
    )
    daemons.start(
        places, "kube-proxy", [places.program("kubernetes", "kube-proxy"), f"--config={proxy_settings}"]
    )
    daemons.wait_until_up(places, "kubelet", lambda: node_ready(places), 90)


def node_ready(places: Places) -> bool:
    """Whether the node has said so itself."""
    path = '-o=jsonpath={.status.conditions[?(@.type=="Ready")].status}'
    try:
        return kubectl(places, "get", "node", NODE, path) == "True"
    except ClusterError:  # the kubelet has not made its node yet
        return False


def wait_for_deployments(places: Places, namespace: str, seconds: int = 180) -> None:
    """Wait until every Deployment and StatefulSet of the namespace has all its pods ready."""

    def unready() -> list[str]:
        listed = json.loads(kubectl(places, "get", "deployments,statefulsets", "-n", namespace, "-o", "json"))
        return [
            item["metadata"]["name"]
            for item in listed["items"]
            if item["status"].get("readyReplicas", 0) < item["spec"]["replicas"]
        ]

    def problem() -> str:
        return (
            f"{namespace}: not ready after {seconds} s: {', '.join(unready())}; "
            f"see `{places.kubectl} --kubeconfig {places.kubeconfig} -n {namespace} describe pods`"
        )

    wait_until(lambda: not unready(), seconds, problem)


def write_kubeconfig(places: Places, user: str, path: Path) -> None:
    """Write a kubeconfig that can be copied, for it has the certificates in it; its owner alone reads it."""

    def embedded(name: str) -> str:
        return base64.b64encode((places.certificates / name).read_bytes()).decode()

    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": NAME,
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user}}],
        "clusters": [
            {
                "name": NAME,
                "cluster": {"server": API_ADDRESS, "certificate-authority-data": embedded("ca.crt")},
            }
        ],
        "users": [
            {
                "name": user,
                "user": {
                    "client-certificate-data": embedded(f"{user}.crt"),
                    "client-key-data": embedded(f"{user}.key"),
                },
            }
        ],
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))


def etcd(places: Places) -> list[str]:
    """etcd without fsync: its data never outlives the cluster."""
    keys = places.certificates
    return [
        "etcd",
        f"--data-dir={places.state / 'etcd'}",
        "--unsafe-no-fsync",
        "--log-level=warn",
        "--client-cert-auth",
        "--peer-client-cert-auth",
        f"--listen-client-urls={ETCD_ADDRESS}",
        f"--advertise-client-urls={ETCD_ADDRESS}",
        f"--listen-peer-urls={PEER_ADDRESS}",
        f"--initial-advertise-peer-urls={PEER_ADDRESS}",
        f"--initial-cluster=default={PEER_ADDRESS}",
        *(
            f"--{who}{what}"
            for who in ("", "peer-")
            for what in (
                f"cert-file={keys / 'etcd.crt'}",
                f"key-file={keys / 'etcd.key'}",
                f"trusted-ca-file={keys / 'ca.crt'}",
            )
        ),
    ]


def api_server(places: Places) -> list[str | Path]:
    """The API server; its audit log holds every attempt to write to Knative Eventing's resources."""
    keys = places.certificates
    policy = places.state / "audit-policy.json"
    policy.write_text(json.dumps(settings.audit_policy()))
    return [
        places.program("kubernetes", "kube-apiserver"),
        f"--advertise-address={NODE_ADDRESS}",
        f"--bind-address={NODE_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--etcd-servers={ETCD_ADDRESS}",
        f"--etcd-cafile={keys / 'ca.crt'}",
        f"--etcd-certfile={keys / 'etcd.crt'}",
        f"--etcd-keyfile={keys / 'etcd.key'}",
        f"--client-ca-file={keys / 'ca.crt'}",
        f"--tls-cert-file={keys / 'apiserver.crt'}",
        f"--tls-private-key-file={keys / 'apiserver.key'}",
        f"--kubelet-certificate-authority={keys / 'ca.crt'}",
        f"--kubelet-client-certificate={keys / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={keys / 'apiserver-kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        # Other API servers, such as that of metrics, trust this certificate to name the caller of a request.
        f"--proxy-client-cert-file={keys / 'front-proxy.crt'}",
        f"--proxy-client-key-file={keys / 'front-proxy.key'}",
        f"--requestheader-client-ca-file={keys / 'ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={keys / 'service-accounts.key'}",
        f"--service-account-signing-key-file={keys / 'service-accounts.key'}",
        f"--audit-policy-file={policy}",
        f"--audit-log-path={places.logs / 'audit.log'}",
    ]


def controller_manager(places: Places) -> list[str | Path]:
    """The controller manager, alone and therefore without leader election."""
    keys = places.certificates
    return [
        places.program("kubernetes", "kube-controller-manager"),
        f"--kubeconfig={keys / 'controller-manager.kubeconfig'}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
        # Tests wait for what an autoscaler does, which looks every 15 s by default.
        "--horizontal-pod-autoscaler-sync-period=5s",
        "--use-service-account-credentials",
        f"--root-ca-file={keys / 'ca.crt'}",
        f"--service-account-private-key-file={keys / 'service-accounts.key'}",
        f"--cluster-signing-cert-file={keys / 'ca.crt'}",
        f"--cluster-signing-key-file={keys / 'ca.key'}",
    ]


def scheduler(places: Places) -> list[str | Path]:
    """The scheduler, alone and therefore without leader election."""
    return [
        places.program("kubernetes", "kube-scheduler"),
        f"--kubeconfig={places.certificates / 'scheduler.kubeconfig'}",
        "--bind-address=127.0.0.1",
        "--leader-elect=false",
    ]
