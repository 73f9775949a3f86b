"""The Services of the manifests to run on this machine.

A Service runs here when its manifest names a command (`beckon.dev/local-command`),
when it runs already (`beckon.dev/local-url`), or when it is one of the tools that ship,
the HTTP adapter or the agent.
"""

import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from beckon_contract.catalogue.annotations import DISPATCH, LOCAL_COMMAND, LOCAL_URL
from beckon_contract.knative.addresses import service_of
from beckon_contract.knative.delivery import Destination
from beckon_contract.knative.eventtypes import InvalidEventType, is_event_type, parse_event_type
from beckon_contract.knative.triggers import Broker, InvalidResource, Trigger, parse_broker, parse_trigger
from beckon_contract.kubernetes_objects import Resource
from beckon_tools.shipped import SHIPPED

SERVING = "serving.knative.dev"


@dataclass(frozen=True, slots=True, order=True)
class ServiceName:
    """The namespace and the name of a Knative Service."""

    namespace: str
    name: str

    def __str__(self) -> str:
        """Return `namespace/name`."""
        return f"{self.namespace}/{self.name}"


ADAPTER = ServiceName("beckon", "beckon-adapter")
"""The HTTP adapter, where Triggers lead to it in a cluster."""

LIBRARY = "library"
"""The example of a plain HTTP API: no tool itself, the adapter makes tools of it."""

AGENT = ServiceName("beckon", "beckon-agent")
"""The agent itself, where Triggers lead to it in a cluster: it is a tool of agents, too."""


@dataclass(frozen=True, slots=True)
class LocalService:
    """The local form of a Service: a `command` to run, or a `url`.

    With neither it is not available here. `problem` is an error in its manifest's annotation; `broker` is
    the Broker from which it gets its events.
    """

    service: ServiceName
    command: tuple[str, ...] = ()
    url: str = ""
    problem: str = ""
    broker: str = "default"


@dataclass(frozen=True, slots=True)
class WantedService:
    """The Services and Brokers required by a set of manifests."""

    services: Mapping[ServiceName, LocalService]
    brokers: Mapping[tuple[str, str], Resource | None]

    def commands(self) -> list[LocalService]:
        """Return the Services with a command to run here."""
        return [local for local in self.services.values() if local.command]

    def missing(self) -> dict[ServiceName, str]:
        """Return the called Services without a command or URL here. Each has the remedy as its value."""
        cure = f"annotate its Service with {LOCAL_COMMAND} or {LOCAL_URL}"
        return {
            name: local.problem or cure
            for name, local in sorted(self.services.items())
            if not local.command and not local.url
        }


def wanted(resources: Iterable[Resource], agent: str = "") -> WantedService:
    """Return the Services and Brokers required by manifests.

    Invalid manifests require nothing. `agent` is the address of the agent that runs here.
    """
    known: dict[ServiceName, Resource] = {}
    wanted: set[ServiceName] = set()
    feeding: dict[ServiceName, str] = {}
    brokers: dict[tuple[str, str], Resource | None] = {("default", "default"): None}
    for resource in resources:
        if resource.kind == "Service" and resource.group in (SERVING, ""):
            known[ServiceName(resource.namespace, resource.name)] = resource
        elif resource.kind == "Trigger" and (trigger := _trigger(resource)):
            for name in _services_of(trigger):
                wanted.add(name)
                feeding.setdefault(name, trigger.broker)
            brokers.setdefault((trigger.namespace, trigger.broker), None)
        elif is_event_type(resource):
            wanted.update(_called_directly(resource))
        elif resource.kind == "Broker":
            brokers[resource.namespace, resource.name] = resource
            if (broker := _broker(resource)) and broker.delivery.dead_letter:
                wanted.update(_service_of(broker.delivery.dead_letter, broker.namespace))
    wanted.update(name for name, service in known.items() if _has_local_form(service))
    services = {
        name: replace(_local(name, known.get(name), agent), broker=feeding.get(name, "default"))
        for name in sorted(wanted)
    }
    return WantedService(services, brokers)


def called_services(resource: Resource) -> list[ServiceName]:
    """Return the Services that a Trigger, or an EventType with direct dispatch, names."""
    if resource.kind == "Trigger" and (trigger := _trigger(resource)):
        return list(_services_of(trigger))
    return list(_called_directly(resource)) if is_event_type(resource) else []


def _local(name: ServiceName, manifest: Resource | None, agent: str) -> LocalService:
    annotations = manifest.annotations if manifest else {}
    if url := annotations.get(LOCAL_URL):
        return LocalService(name, url=url)
    if command := annotations.get(LOCAL_COMMAND):
        return _by_command(name, command)
    if name == AGENT:
        return LocalService(name, url=agent)
    if name == ADAPTER:
        return LocalService(name, command=(sys.executable, "-m", "beckon_adapter"))
    if name.name in SHIPPED:
        return LocalService(name, command=(sys.executable, "-m", "beckon_tools", "serve", name.name))
    return LocalService(name)


def shared_server(command: tuple[str, ...]) -> str:
    """Return the name of a server that ships and may share a process, else ""."""
    match command:
        case (sys.executable, "-m", "beckon_tools", "serve", name) if name in SHIPPED:
            return name
        case (sys.executable, "-m", "beckon_adapter.library"):
            return LIBRARY
        case _:
            return ""


def _by_command(name: ServiceName, command: str) -> LocalService:
    try:
        words = shlex.split(command)
    except ValueError as error:
        return LocalService(name, problem=f"its annotation {LOCAL_COMMAND} is no command: {error}")
    if words[:1] in (["python"], ["python3"]):
        words[0] = sys.executable
    return LocalService(name, command=tuple(words))


def _has_local_form(service: Resource) -> bool:
    return bool(service.annotations.keys() & {LOCAL_COMMAND, LOCAL_URL})


def _services_of(trigger: Trigger) -> Iterable[ServiceName]:
    yield from _service_of(trigger.subscriber, trigger.namespace)
    if trigger.delivery and trigger.delivery.dead_letter:
        yield from _service_of(trigger.delivery.dead_letter, trigger.namespace)


def _called_directly(resource: Resource) -> Iterable[ServiceName]:
    """Yield the target Service of an EventType with direct dispatch. Its calls need no Trigger."""
    try:
        event_type = parse_event_type(resource)
    except InvalidEventType:
        return
    if event_type.annotations.get(DISPATCH) == "direct" and event_type.reference is not None:
        yield from _service_of(Destination(event_type.reference), event_type.namespace)


def _service_of(destination: Destination, namespace: str) -> Iterable[ServiceName]:
    reference = destination.ref
    if reference is not None and reference.kind == "Service":
        yield ServiceName(reference.namespace or namespace, reference.name)
    elif reference is None and destination.uri and (name := service_of(destination.uri)):
        yield ServiceName(*name)


def _trigger(resource: Resource) -> Trigger | None:
    try:
        return parse_trigger(resource)
    except InvalidResource:
        return None


def _broker(resource: Resource) -> Broker | None:
    try:
        return parse_broker(resource)
    except InvalidResource:
        return None
