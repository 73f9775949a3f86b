"""The processes of the local platform, with their ports and settings, and its generated manifests.

The manifests hold addresses, dead-letter sinks and Triggers to the shim. In a cluster, Knative's controllers
and Beckon's operator provide all of this.
"""

import os
import secrets
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from beckon_cli.local import local_model
from beckon_cli.local.process import Program
from beckon_cli.local.services import LocalService, ServiceName, shared_server
from beckon_cli.settings import Settings
from beckon_contract.knative.addresses import CLUSTER_DOMAIN
from beckon_contract.knative.broker_class import BECKON_CLASS
from beckon_contract.knative.reply_triggers import (
    progress_trigger_name,
    progress_trigger_spec,
    reply_filter,
    reply_trigger_name,
    reply_trigger_spec,
)
from beckon_contract.kubernetes_objects import Resource
from beckon_runtime.collectors import is_named
from beckon_tools.outbox import OUTBOX

# Six seconds of retries in all: long enough for a tool to be started again, short
# enough that a call to a dead one is reported as undeliverable before it times out.
_DELIVERY: Mapping[str, Any] = {"retry": 5, "backoffPolicy": "exponential", "backoffDelay": "PT0.2S"}

_NOT_READY: Mapping[str, Any] = {
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "NotAnswering",
            "message": "its process does not answer",
        }
    ]
}


def manifests(
    *,
    addresses: Mapping[ServiceName, str],
    starting: Iterable[ServiceName] = (),
    brokers: Mapping[tuple[str, str], Resource | None],
    broker_url: str,
    reply_url: str,
    reply_attribute: str,
) -> str:
    """Return, as YAML, the Services of each address, and a Broker with its Triggers for each broker.

    The `starting` Services have no address yet: they are not ready, and no tool that needs them is offered.
    """
    statuses: dict[ServiceName, Mapping[str, Any]] = {
        **dict.fromkeys(starting, _NOT_READY),
        **{name: {"address": {"url": url}} for name, url in addresses.items()},
    }
    documents: list[dict[str, Any]] = [
        _service(api_version, name, status)
        for name, status in sorted(statuses.items())
        # Knative's, and Kubernetes's own: a Trigger may name either.
        for api_version in ("serving.knative.dev/v1", "v1")
    ]
    for (namespace, name), written in sorted(brokers.items()):
        documents.append(_broker(namespace, name, written, broker_url, reply_url))
        replies = reply_trigger_spec(name, reply_url, reply_filter(BECKON_CLASS, reply_attribute))
        documents.append(_trigger(namespace, reply_trigger_name(name), replies))
        progress = progress_trigger_spec(name, reply_url, BECKON_CLASS)
        documents.append(_trigger(namespace, progress_trigger_name(name), progress))
    return _dump(documents)


def _service(api_version: str, service: ServiceName, status: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": service.namespace, "name": service.name}
    return {"apiVersion": api_version, "kind": "Service", "metadata": metadata, "status": dict(status)}


def _broker(
    namespace: str, name: str, written: Resource | None, broker_url: str, reply_url: str
) -> dict[str, Any]:
    """Return the user's Broker with an address and a dead-letter sink.

    A dead-letter sink that the user's Broker names is not replaced.
    """
    spec: dict[str, Any] = dict(written.spec) if written else {}
    delivery = dict(spec.get("delivery") or _DELIVERY)
    delivery.setdefault("deadLetterSink", {"uri": f"{reply_url}/dead-letters"})
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {**spec, "delivery": delivery},
        "status": {"address": {"url": f"{broker_url}/{namespace}/{name}"}},
    }


def _trigger(namespace: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {"namespace": namespace, "name": name},
        "spec": spec,
    }


def _dump(documents: Iterable[Mapping[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False)


_LOOPBACK = "127.0.0.1"
_NOT_FOR_TOOLS = frozenset({"BECKON_SHIM_KEYS", "BECKON_SHIM_KEYS_FILE", "BECKON_STORE"})


@dataclass(frozen=True, slots=True)
class Addresses:
    """The URLs of the platform's parts.

    `demo` is the demo model and `local_model` a language model that the platform serves; each is empty when
    another model is configured. `nats` is empty when events are in memory, or in a server that the platform
    does not start.
    """

    agent: str
    broker: str
    shim: str
    replies: str
    demo: str = ""
    nats: str = ""
    local_model: str = ""


def addresses(settings: Settings, ports: Iterator[int], *, with_nats: bool = False) -> Addresses:
    """Return the URL of every part. The agent has its configured port, the others the next free ones."""
    broker, shim, replies = (f"http://{_LOOPBACK}:{next(ports)}" for _ in range(3))
    model = "" if settings.openai_base_url else f"http://{_LOOPBACK}:{next(ports)}"
    demo, local_model = ("", model) if settings.uses_local_model else (model, "")
    nats = f"nats://{_LOOPBACK}:{next(ports)}" if with_nats else ""
    return Addresses(settings.url, broker, shim, replies, demo, nats, local_model)


def core_programs(
    settings: Settings, where: Addresses, generated: Path, environment: Mapping[str, str]
) -> list[Program]:
    """Return the platform's own programs, in the order of their start."""
    manifests = folders(settings, generated)
    shim_keys = environment.get("BECKON_SHIM_KEYS") or environment.get("BECKON_SHIM_KEYS_FILE")
    keys = {} if shim_keys else {"BECKON_SHIM_KEYS": secrets.token_hex(32)}
    nats = where.nats or settings.nats_url.get_secret_value()
    programs = [
        _program(
            "broker",
            "beckon_broker",
            where.broker,
            BECKON_PORT=_port(where.broker),
            BECKON_MANIFESTS=manifests,
            BECKON_BROKER_REPLY_INBOX=where.replies + "/replies",
            **({"BECKON_NATS_URL": nats} if nats else {}),
        ),
        _program(
            "shim",
            "beckon_shim",
            where.shim,
            BECKON_PORT=_port(where.shim),
            BECKON_SHIM_REPLY_PORT=_port(where.replies),
            BECKON_SHIM_BROKER_URL=where.broker + "/{namespace}/{name}",
            BECKON_SHIM_LATE_REPLY_SINK=where.agent + "/late-replies",
            **keys,
        ),
    ]
    if where.demo:
        programs.append(_program("demo model", "beckon_demo", where.demo, BECKON_PORT=_port(where.demo)))
    if where.local_model:
        programs.append(local_model.server_program(where.local_model))
    agent = _program(
        "agent",
        "beckon_agent",
        where.agent,
        **_model_settings(settings, where),
        OPENAI_API_KEY=settings.openai_api_key.get_secret_value(),
        BECKON_DIALECT=settings.dialect,
        BECKON_HOST=settings.host,
        BECKON_PORT=str(settings.port),
        BECKON_MANIFESTS=manifests,
        BECKON_SHIM_URL=where.shim,
        K_SINK=where.broker + "/default/default",
        **keys,
    )
    return [*programs, agent]


def _model_settings(settings: Settings, where: Addresses) -> dict[str, str]:
    url, model = settings.openai_base_url, settings.model
    if where.demo:
        url, model = f"{where.demo}/v1", settings.model or "demo"
    elif where.local_model:
        url, model = f"{where.local_model}/v1", local_model.MODEL
    return {"OPENAI_BASE_URL": url, "BECKON_MODEL": model}


def folders(settings: Settings, generated: Path) -> str:
    """Return the manifest folders in the form the services read.

    The user's folder comes first, then the generated one, separated by a colon.
    """
    return f"{settings.manifests.resolve()}:{generated}"


def tool_programs(
    tools: Iterable[LocalService],
    ports: Mapping[ServiceName, int],
    broker: str,
    environment: Mapping[str, str],
    outboxes: str = "",
) -> dict[tuple[ServiceName, ...], Program]:
    """Return the programs of the tools, by the Services that each serves.

    A tool has a process of its own. Those that ship share one for each Broker, except where spans are
    exported: a process has one name in them. `outboxes` is the beginning of the paths of their outboxes.
    """
    groups: dict[tuple[str, ...], list[LocalService]] = {}
    for local in tools:
        shared = shared_server(local.command) and not _has_collector(environment)
        alone = (local.service.namespace, local.service.name)
        groups.setdefault((local.service.namespace, "", local.broker) if shared else alone, []).append(local)
    return {
        tuple(local.service for local in group): _tool_program(group, ports, broker, environment, outboxes)
        for group in groups.values()
    }


def _tool_program(
    group: Sequence[LocalService],
    ports: Mapping[ServiceName, int],
    broker: str,
    environment: Mapping[str, str],
    outboxes: str,
) -> Program:
    """Return the program of one tool, or of several that share a process.

    A tool finds the manifests in `BECKON_MANIFESTS`, its port in `PORT`, as in Knative, and in `K_SINK`, as
    with a SinkBinding, its Broker at the broker service `broker`, for answers that it sends later. The
    adapter calls a tool by the name that its Service has in a cluster, so that name is allowed besides
    `BECKON_ALLOWED_HOSTS`.
    """
    first = group[0]
    own = {
        "BECKON_MANIFESTS": environment["BECKON_MANIFESTS"],
        "BECKON_ALLOWED_HOSTS": ",".join(_allowed_hosts(group, environment)),
        "BECKON_HOST": _LOOPBACK,
        "K_SINK": f"{broker}/{first.service.namespace}/{first.broker}",
    }
    urls = tuple(f"http://{_LOOPBACK}:{ports[local.service]}" for local in group)
    if len(group) == 1:
        own["PORT"] = str(ports[first.service])
        if outboxes and not environment.get(OUTBOX):
            own[OUTBOX] = f"{outboxes}{first.service.namespace}.{first.service.name}.outbox"
        return Program(first.service.name, first.command, own, urls)
    members = [f"{shared_server(local.command)}={ports[local.service]}" for local in group]
    return Program("shipped tools", (sys.executable, "-m", "beckon_cli.local.group", *members), own, urls)


def outbox_prefix(environment: Mapping[str, str], state: Path) -> str:
    """Return the beginning of the paths of the tools' outboxes, "" for no outboxes.

    An outbox lives as long as the runs that wait for its answers. It is beside the file of the store, or in
    the platform's folder `state` where the store is in memory. A store on a server gives no place for it.
    """
    scheme, _, rest = environment.get("BECKON_STORE", "").partition("://")
    if scheme not in ("", "sqlite"):
        return ""
    file = rest.removeprefix("/")
    if not file or file == ":memory:":
        return f"{state}{os.sep}"
    return f"{Path(file).absolute()}."


def _allowed_hosts(group: Iterable[LocalService], environment: Mapping[str, str]) -> Iterator[str]:
    if hosts := environment.get("BECKON_ALLOWED_HOSTS"):
        yield hosts
    for local in group:
        dns_name = f"{local.service.name}.{local.service.namespace}.svc"
        yield from (dns_name, f"{dns_name}.{CLUSTER_DOMAIN}")


def _has_collector(environment: Mapping[str, str]) -> bool:
    try:
        return is_named(environment)
    except ValueError:
        return True  # each service refuses it with its reason


def for_tools(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for tools, without the platform's secrets.

    It lacks the shim's keys, with which tools could answer for each other, and the store of the runs.
    """
    return {name: value for name, value in environment.items() if name not in _NOT_FOR_TOOLS}


def _program(name: str, module: str, url: str, **environment: str) -> Program:
    command = (sys.executable, "-m", module)
    return Program(name, command, {"BECKON_HOST": _LOOPBACK, **environment}, (url,), module)


def _port(url: str) -> str:
    return url.rpartition(":")[2]
