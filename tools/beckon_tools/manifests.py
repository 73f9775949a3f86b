"""The manifests of a tool: EventType, Trigger, Service, and SinkBinding.

The EventType describes the tool, and the Trigger routes calls to it.
"""

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from beckon_contract.catalogue.annotations import (
    DESTRUCTIVE,
    IDEMPOTENT,
    LOCAL_COMMAND,
    PARAMETERS,
    READ_ONLY,
    REQUIRES_APPROVAL,
    RETURNS,
    TIMEOUT,
)
from beckon_contract.yamltext import write_yaml
from beckon_tools.declaration import AnyTool
from beckon_tools.errors import UsageError
from beckon_tools.outbox import OUTBOX
from beckon_tools.shipped import DEFAULT_IMAGE

Manifest = dict[str, Any]

_EVENTTYPE_NOTE = """\
What the model sees: the name, the description and the parameters. The schema is
written twice: in spec.schemaData, which Knative 1.15 and later erase, and in the
annotation, which lasts. A program sees the schema of the results, too.
yamllint disable rule:line-length"""
_TRIGGER_NOTE = """\
Which events reach the tool. There is no spec.delivery here: it would replace
the Broker's altogether, and with it the dead-letter sink by which a caller
learns at once that its call cannot be delivered."""
_DELIVERY_NOTE = """\
Which events reach the tool, and what becomes of those that it does not take.
spec.delivery replaces the whole of the Broker's."""
_SINK_NOTE = """\
Where the tool sends what is no reply, progress and answers that come later:
Knative writes the Broker's address into K_SINK of the Service."""
_SERVICE_NOTE = """\
What runs: reached from inside the cluster only, started by the first call,
stopped when idle. With autoscaling.knative.dev/min-scale "1" the first call
need not wait for a start."""
_DEPLOYMENT_NOTE = """\
What runs. Raise the replicas if calls wait; each Pod answers many at once."""
_PLAIN_NOTE = """\
Where the Trigger finds it, inside the cluster only."""
_LATE_NOTE = """\
What runs: reached from inside the cluster only. It works after it has taken a
call, so there is a Pod at any time. The outbox has the answers that no Broker
has acknowledged: it survives a restart of the container, but not its Pod. For
that, put a PersistentVolumeClaim in its place."""
_OUTBOX_FOLDER = "/outbox"


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of a tool in a cluster.

    `reference` is its name on the command line. Without a namespace it is the current one. `dead_letters`
    is the URL of a dead-letter sink, for a Broker that has none of its own. With `plain` the tool runs in a
    Deployment behind a Service, else as a Knative Service.
    """

    reference: str
    image: str = DEFAULT_IMAGE
    broker: str = "default"
    namespace: str | None = None
    dead_letters: str = ""
    plain: bool = False


def event_type(tool: AnyTool, placement: Placement) -> Manifest:
    """Return the EventType of a tool (eventing.knative.dev/v1beta2)."""
    parameters = _write_json(tool.signature.schema)
    annotations = {**_hint_annotations(tool), PARAMETERS: parameters}
    if tool.returns is not None:
        annotations[RETURNS] = _write_json(tool.returns)
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": _metadata_of(tool.name, placement, annotations=annotations),
        "spec": {
            "type": tool.type,
            "description": tool.description,
            "schemaData": parameters,
            "reference": _service_reference(tool, placement),
        },
    }


def _write_json(schema: Mapping[str, Any]) -> str:
    return orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode()


def trigger_manifest(tool: AnyTool, placement: Placement) -> Manifest:
    """Return the Trigger for the calls of the tool, and no other events."""
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": _metadata_of(tool.service, placement),
        "spec": {
            "broker": placement.broker,
            "filter": {"attributes": {"type": tool.type}},
            "subscriber": {"ref": _service_reference(tool, placement)},
            **_delivery_of(placement),
        },
    }


def knative_service(tool: AnyTool, placement: Placement) -> Manifest:
    """Return the Knative Service of the tool, with minimal rights.

    A tool that answers late has an outbox, and a Pod that does not end when it is idle.
    """
    late = tool.signature.ticket_parameter is not None
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": _metadata_of(
            tool.service,
            placement,
            labels={"networking.knative.dev/visibility": "cluster-local"},
            annotations=_local_command(placement),
        ),
        "spec": {
            "template": {
                "metadata": {"annotations": {"autoscaling.knative.dev/min-scale": "1" if late else "0"}},
                "spec": {"timeoutSeconds": 60, **_pod_spec(tool, placement)},
            }
        },
    }


def plain_service(tool: AnyTool, placement: Placement) -> Manifest:
    """Return the Service (v1) in front of the Deployment."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata_of(tool.service, placement, annotations=_local_command(placement)),
        "spec": {"selector": _labels_of(tool), "ports": [{"port": 80, "targetPort": 8080}]},
    }


def deployment(tool: AnyTool, placement: Placement) -> Manifest:
    """Return the Deployment of the tool, with minimal rights."""
    pod = _pod_spec(tool, placement)
    for probe in ("readinessProbe", "livenessProbe"):
        pod["containers"][0][probe]["httpGet"]["port"] = 8080
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata_of(tool.service, placement),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": _labels_of(tool)},
            "template": {"metadata": {"labels": _labels_of(tool)}, "spec": pod},
        },
    }


def _labels_of(tool: AnyTool) -> dict[str, str]:
    return {"app.kubernetes.io/name": tool.service}


def _pod_spec(tool: AnyTool, placement: Placement) -> Manifest:
    late = tool.signature.ticket_parameter is not None
    outbox = {
        "env": [{"name": OUTBOX, "value": f"{_OUTBOX_FOLDER}/answers.db"}],
        "volumeMounts": [{"name": "outbox", "mountPath": _OUTBOX_FOLDER}],
    }
    volumes = {"volumes": [{"name": "outbox", "emptyDir": {"sizeLimit": "1Gi"}}]}
    container = {
        **({"name": "tool"} if placement.plain else {}),
        "image": placement.image,
        "command": ["python", "-m", "beckon_tools"],
        "args": ["serve", placement.reference, "--host=0.0.0.0"],
        **(outbox if late else {}),
        "ports": [{"containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/readyz"}},
        "livenessProbe": {"httpGet": {"path": "/healthz"}},
        "resources": {
            "requests": {"cpu": "25m", "memory": "96Mi"},
            "limits": {"cpu": "1", "memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {"containers": [container], **(volumes if late else {})}


def sink_binding(tool: AnyTool, placement: Placement) -> Manifest:
    """Return the SinkBinding of what starts the Pods to its Broker."""
    deployed = {"apiVersion": "apps/v1", "kind": "Deployment", "name": tool.service}
    subject = deployed if placement.plain else _service_reference(tool, placement)
    return bind_to_broker(_metadata_of(tool.service, placement), subject, placement.broker)


def bind_to_broker(metadata: Manifest, subject: Manifest, broker: str) -> Manifest:
    """Return the SinkBinding of a subject to a Broker of its namespace. `subject` is a reference."""
    reference = {"apiVersion": "eventing.knative.dev/v1", "kind": "Broker", "name": broker}
    return {
        "apiVersion": "sources.knative.dev/v1",
        "kind": "SinkBinding",
        "metadata": metadata,
        "spec": {"subject": subject, "sink": {"ref": reference}},
    }


_WRITERS: Mapping[str, tuple[Callable[[AnyTool, Placement], Manifest], str]] = {
    "eventtype": (event_type, _EVENTTYPE_NOTE),
    "trigger": (trigger_manifest, _TRIGGER_NOTE),
    "service": (knative_service, _SERVICE_NOTE),
}


def write_manifests(tool: AnyTool, placement: Placement) -> dict[str, str]:
    """Return the YAML of each manifest, by "eventtype", "trigger" and "service".

    A plain tool has a "deployment" as well; one that reports progress or answers later a "sinkbinding".
    """
    writers = dict(_WRITERS)
    if placement.dead_letters:
        writers["trigger"] = (trigger_manifest, _DELIVERY_NOTE)
    if tool.signature.ticket_parameter:
        writers["service"] = (knative_service, _LATE_NOTE)
    if placement.plain:
        note = _LATE_NOTE if tool.signature.ticket_parameter else _DEPLOYMENT_NOTE
        writers["deployment"] = (deployment, note)
        writers["service"] = (plain_service, _PLAIN_NOTE)
    if tool.signature.ticket_parameter or tool.signature.progress_parameter:
        writers["sinkbinding"] = (sink_binding, _SINK_NOTE)
    return {name: _write_manifest(build(tool, placement), note) for name, (build, note) in writers.items()}


def save_manifests(manifests: Mapping[str, str], folder: Path) -> None:
    """Write each manifest to a file of the folder. Raises `UsageError` if that fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in manifests.items():
            (folder / f"{name}.yaml").write_text(text, "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write to {folder}: {error.strerror}") from None


def _metadata_of(name: str, placement: Placement, **more: Mapping[str, str]) -> Manifest:
    metadata: Manifest = {"name": name}
    if placement.namespace is not None:
        metadata["namespace"] = placement.namespace
    return {**metadata, **{key: value for key, value in more.items() if value}}


def _delivery_of(placement: Placement) -> Manifest:
    """Return the `delivery` of a Trigger with a dead-letter sink.

    Its retries are those of Beckon's own Broker. Without a dead-letter sink the result is empty.
    """
    if not placement.dead_letters:
        return {}
    retries = {"retry": 5, "backoffPolicy": "exponential", "backoffDelay": "PT0.2S"}
    return {"delivery": {**retries, "deadLetterSink": {"uri": placement.dead_letters}}}


def _local_command(placement: Placement) -> dict[str, str]:
    """Return the annotation with the local command of a user's tool.

    The local platform runs the tool by it; it knows the shipped tools without.
    """
    if ":" not in placement.reference:
        return {}
    return {LOCAL_COMMAND: f"python -m beckon_tools serve {placement.reference}"}


def _service_reference(tool: AnyTool, placement: Placement) -> Manifest:
    version = "v1" if placement.plain else "serving.knative.dev/v1"
    return {"apiVersion": version, "kind": "Service", "name": tool.service}


def _hint_annotations(tool: AnyTool) -> dict[str, str]:
    hints = {
        READ_ONLY: tool.hints.read_only,
        IDEMPOTENT: tool.hints.idempotent,
        REQUIRES_APPROVAL: tool.hints.requires_approval,
    }
    annotations = {name: "true" for name, hint in hints.items() if hint}
    if tool.hints.destructive is not None:
        annotations[DESTRUCTIVE] = str(tool.hints.destructive).lower()
    if tool.hints.timeout is not None:
        annotations[TIMEOUT] = f"{tool.hints.timeout:g}s"
    return annotations


def _write_manifest(manifest: Manifest, note: str) -> str:
    comment = textwrap.indent(note, "# ")
    body = write_yaml(manifest, width=78)
    return f"---\n{comment}\n{body}"
