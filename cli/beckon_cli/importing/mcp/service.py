"""The Service of an MCP server that is a command."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from beckon_cli.importing.candidates import Service
from beckon_cli.importing.manifests import metadata_of, write_manifest
from beckon_contract.catalogue.annotations import LOCAL_COMMAND
from beckon_tools.manifests import bind_to_broker
from beckon_tools.shipped import DEFAULT_IMAGE

_NOTE = (
    "The bridge to the MCP server, which it runs. The local platform starts it by the annotation; for a "
    "cluster, import with --into, which writes an image as well."
)


@dataclass(frozen=True, slots=True)
class Bridge:
    """A bridge, identified by the name of its server.

    A `plain` one is a Kubernetes Service, not a Knative Service. `broker` delivers the calls of its tools.
    """

    server: str
    namespace: str = ""
    plain: bool = False
    broker: str = "default"

    @property
    def service(self) -> str:
        """The name of its Service."""
        return service_name(self.server)


def service_name(server: str) -> str:
    """Return the name of a server's bridge Service."""
    return f"mcp-{server}"


def local_service(bridge: Bridge, command: Sequence[str]) -> Service:
    """Return the bridge Service for the local platform. No image has the server's command."""
    words = ["python", "-m", "beckon_adapter", "--mcp", bridge.server, "--", *command]
    document = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            **metadata_of(bridge.service, bridge.namespace),
            "annotations": {LOCAL_COMMAND: shlex.join(words)},
        },
        "spec": {"template": {"spec": {"containers": [{"image": DEFAULT_IMAGE, "command": words}]}}},
    }
    return Service(bridge.service, text=write_manifest(document, [_NOTE]))


def cluster_service(bridge: Bridge) -> Service:
    """Return the bridge Service for a cluster, without its manifest.

    The project has the manifest in a file of its own.
    """
    return Service(bridge.service, "v1" if bridge.plain else "serving.knative.dev/v1")


MANIFESTS = "/srv/mcp"
"""Where the image has the EventTypes of its server."""

_ONE = (
    "The bridge to the MCP server, which it runs: the command is here and in the image, and in no "
    "EventType. One replica, always: what a server remembers, it remembers in its process. Where it "
    "remembers nothing, more may run, and none while there are no calls."
)
_SINK = (
    "The destination of the server's progress reports, as events of the call. Without it they are "
    "dropped; all else works."
)
_LIMITS = {"requests": {"cpu": "50m", "memory": "192Mi"}, "limits": {"cpu": "1", "memory": "768Mi"}}


@dataclass(frozen=True, slots=True)
class Running:
    """The workload: its image, commands and secrets.

    `command` runs in the image, `typed` on this machine. `environment` names the variables from the Secret
    `secret`.
    """

    image: str
    command: Sequence[str]
    typed: Sequence[str]
    environment: Sequence[str]
    secret: str

    def adapter_arguments(self, server: str) -> list[str]:
        """Return the arguments of `python -m beckon_adapter` in the image."""
        return [
            *_mcp_flags(server),
            "--manifests",
            MANIFESTS,
            *_env_flags(self.environment),
            "--",
            *self.command,
        ]

    def local_command(self, server: str) -> str:
        """Return the command line for the local platform."""
        ours = ["python", "-m", "beckon_adapter", *_mcp_flags(server), *_env_flags(self.environment)]
        return shlex.join([*ours, "--", *self.typed])


def knative_service(running: Running, bridge: Bridge) -> str:
    """Return the Knative Service as YAML."""
    spec = {
        # The start of a server that has ended, and the longest call.
        "timeoutSeconds": 130,
        **_pod_fields(),
        "containers": [{**_container_spec(running, bridge), "ports": [{"containerPort": 8080}]}],
    }
    service = {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {
            **metadata_of(bridge.service, bridge.namespace),
            "labels": {"networking.knative.dev/visibility": "cluster-local"},
            "annotations": {LOCAL_COMMAND: running.local_command(bridge.server)},
        },
        "spec": {
            "template": {
                "metadata": {
                    "annotations": {
                        "autoscaling.knative.dev/min-scale": "1",
                        "autoscaling.knative.dev/max-scale": "1",
                    }
                },
                "spec": spec,
            }
        },
    }
    return write_manifest(service, [_ONE])


def plain_service(running: Running, bridge: Bridge) -> str:
    """Return a Deployment and its Service as YAML."""
    labels = {"app.kubernetes.io/name": bridge.service}
    security = {"fsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"}}
    container = {**_container_spec(running, bridge), "ports": [{"name": "http", "containerPort": 8080}]}
    for probe in ("readinessProbe", "livenessProbe"):
        container[probe] = {"httpGet": {**container[probe]["httpGet"], "port": "http"}, "periodSeconds": 10}
    pod = {
        **_pod_fields(),
        "securityContext": security,
        # 25 s for calls that are in progress, and some to end the server.
        "terminationGracePeriodSeconds": 45,
        "containers": [container],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata_of(bridge.service, bridge.namespace), "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **metadata_of(bridge.service, bridge.namespace),
            "labels": labels,
            "annotations": {LOCAL_COMMAND: running.local_command(bridge.server)},
        },
        "spec": {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    }
    return write_manifest(deployment, [_ONE]) + write_manifest(service)


def sink_binding(bridge: Bridge) -> str:
    """Return the SinkBinding of the bridge as YAML. It gives the bridge the address for progress reports."""
    version, kind = ("apps/v1", "Deployment") if bridge.plain else ("serving.knative.dev/v1", "Service")
    subject = {"apiVersion": version, "kind": kind, "name": bridge.service}
    return write_manifest(
        bind_to_broker(metadata_of(bridge.service, bridge.namespace), subject, bridge.broker), [_SINK]
    )


def _container_spec(running: Running, bridge: Bridge) -> dict[str, Any]:
    secrets = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": running.secret, "key": name}}}
        for name in running.environment
    ]
    return {
        "name": "bridge",
        "image": running.image,
        "command": ["python", "-m", "beckon_adapter"],
        "args": running.adapter_arguments(bridge.server),
        "env": [
            {"name": "BECKON_HOST", "value": "0.0.0.0"},  # noqa: S104 a container's own address
            {"name": "BECKON_TOOLS_CONCURRENCY", "value": "10"},
            {"name": "HOME", "value": "/tmp"},  # noqa: S108 the one folder that can be written to
            *secrets,
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz"}},
        "livenessProbe": {"httpGet": {"path": "/healthz"}},
        "resources": _LIMITS,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 the one folder that can be written to
    }


def _pod_fields() -> dict[str, Any]:
    """Return the pod's fields to isolate the server from the cluster. The server is the code of others."""
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}],
    }


def _mcp_flags(server: str) -> list[str]:
    return ["--mcp", server]


def _env_flags(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("--env", name)]
