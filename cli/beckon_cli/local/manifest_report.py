"""The findings about manifests that keep the local platform from calling a tool, with file and line."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from beckon_cli.local.services import AGENT, SERVING, ServiceName, WantedService, called_services, wanted
from beckon_contract.catalogue.annotations import LOCAL_COMMAND, LOCAL_URL
from beckon_contract.catalogue.check import check
from beckon_contract.catalogue.diagnostics import Finding, error, warning
from beckon_contract.knative.routes import Listener, read_trigger
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Resource
from beckon_contract.resources.tools import Skipped, Tool
from beckon_sources.folders import locate_field

_ObjectName = tuple[str, str, str]  # kind, namespace and name


class ManifestReport:
    """Reports errors in manifests, each once, and the tools that they take away.

    `caller` is the CloudEvents source of the agent.
    """

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self._offered: Mapping[_ObjectName, Tool] = {}
        self._reported: frozenset[Finding] = frozenset()

    def review(self, resources: Sequence[Resource], needs: WantedService) -> list[str]:
        """Return a line for each error that the last review did not have. Blocks on the file system."""
        report = check(resources, self._caller)
        unserved = _unserved_services(resources, needs)
        # The agent logs what is wrong with Agents.
        errors = [one for one in report.findings if one.severity == "error" and one.kind != "Agent"]
        tools = {("EventType", one.namespace, one.event_type): one for one in report.catalogue.tools.values()}
        offered = {name: tool for name, tool in tools.items() if not _find_cut(tool, unserved)}
        causes = {(one.kind, one.namespace, one.name): one for one in reversed(errors)}
        causes |= {(one.kind, one.namespace, one.name): one for one in map(_skip, report.catalogue.skipped)}
        lines, explained = [], set()
        for name in sorted(self._offered.keys() - offered.keys()):
            cause = _find_cut(tools[name], unserved) if name in tools else causes.get(name)
            if cause is not None:
                lines.append(f"{self._offered[name].name} is no longer offered: {describe_finding(cause)}")
                explained.add(cause)
        findings = dict.fromkeys([*errors, *unserved.values()])
        lines += [describe_finding(one) for one in findings if one not in self._reported | explained]
        self._offered, self._reported = offered, frozenset(findings)
        return lines


def _skip(skipped: Skipped) -> Finding:
    return Finding(
        skipped.origin, skipped.namespace, "EventType", skipped.event_type, "warning", "spec", skipped.message
    )


def describe_finding(finding: Finding) -> str:
    """Return object, place, field and message of a finding; blocks on the file system."""
    what = f"{finding.kind} {finding.namespace}/{finding.name} " if finding.kind else ""
    field = f"{finding.field}: " if finding.field else ""
    return f"{what}{describe_place(finding)}{field}{finding.message}"


def describe_place(finding: Finding) -> str:
    """Return the file and line of a finding in brackets; "" without a file."""
    if not finding.origin:
        return ""
    # A document that cannot be read names the line in its message.
    return f"({locate_field(finding.origin, finding.field) if finding.kind else finding.origin}) "


def missing_services(resources: Sequence[Resource]) -> Iterator[Finding]:
    """Yield a warning for each Service that `beckon up` could not call, because no manifest has it."""
    known = _known_services(resources)
    missing = wanted(resources).missing().keys() - known.keys() - {AGENT}
    for resource in resources:
        for name in called_services(resource):
            if name in missing:
                message = (
                    f"{_no_manifest(name, known)}; beckon up needs it, with {LOCAL_COMMAND} or {LOCAL_URL}"
                )
                yield warning(resource, _field_of(resource), message)


def missing_brokers(resources: Sequence[Resource]) -> Iterator[Finding]:
    """Yield a warning for each Trigger of a Broker that no manifest has.

    A cluster makes the Broker `default` itself, so that one needs no manifest.
    """
    known = {(one.namespace, one.name) for one in resources if one.kind == "Broker" and one.group == GROUP}
    for resource in resources:
        trigger = read_trigger(resource) if resource.kind == "Trigger" and resource.group == GROUP else None
        if not isinstance(trigger, Listener):
            continue
        name, namespace = trigger.trigger.broker, resource.namespace
        if name != "default" and (namespace, name) not in known:
            names = ["default", *(broker for place, broker in known if place == namespace)]
            message = f"no manifest has the Broker {namespace}/{name}{_suggest(name, names)}"
            yield warning(resource, "spec.broker", message)


def _unserved_services(resources: Sequence[Resource], needs: WantedService) -> dict[_ObjectName, Finding]:
    """Return an error for each object that calls a Service without a process or URL here."""
    missing, known = needs.missing(), _known_services(resources)
    findings: dict[_ObjectName, Finding] = {}
    errors: dict[ServiceName, Finding] = {}
    for resource in resources:
        for name in called_services(resource):
            if name in missing:
                if name not in errors:  # the others that call it have the same cause
                    errors[name] = _unserved_error(resource, name, known, missing[name])
                findings[resource.kind, resource.namespace, resource.name] = errors[name]
    for name in missing.keys() - errors.keys():  # a Broker's dead letters go there
        place = known.get(name)
        origin = place.origin if place else ""
        message = f"nothing serves {name} here: {missing[name]}"
        findings["Service", name.namespace, name.name] = Finding(
            origin, name.namespace, "Service", name.name, "error", "", message
        )
    return findings


def _unserved_error(
    resource: Resource, name: ServiceName, known: Mapping[ServiceName, Resource], cure: str
) -> Finding:
    service = known.get(name)
    if service is None:
        cure = f"{_no_manifest(name, known)}; write one, with {LOCAL_COMMAND} or {LOCAL_URL}"
        return error(resource, _field_of(resource), f"nothing serves {name} here: {cure}")
    return error(service, f"metadata.annotations[{LOCAL_COMMAND}]", f"nothing serves {name} here: {cure}")


def _find_cut(tool: Tool, unserved: Mapping[_ObjectName, Finding]) -> Finding | None:
    """Return why no call of a tool reaches a Service here, `None` if one does."""
    if tool.dispatch == "direct":
        return unserved.get(("EventType", tool.namespace, tool.event_type))
    causes = [unserved.get(("Trigger", tool.namespace, route)) for route in tool.routes]
    return causes[0] if causes and all(causes) else None


def _known_services(resources: Iterable[Resource]) -> dict[ServiceName, Resource]:
    return {
        ServiceName(one.namespace, one.name): one
        for one in resources
        if one.kind == "Service" and one.group in ("", SERVING)
    }


def _field_of(resource: Resource) -> str:
    """Return the field with which an object names the Service."""
    return "spec.subscriber" if resource.kind == "Trigger" else "spec.reference"


def _no_manifest(name: ServiceName, known: Iterable[ServiceName]) -> str:
    hint = _suggest(name.name, [one.name for one in known if one.namespace == name.namespace])
    return f"no manifest has the Service {name}{hint}"


def _suggest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    return f"; did you mean {near[0]}?" if near else ""
