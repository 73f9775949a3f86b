"""`beckon check`: problems in EventTypes, Triggers and Agents, and the resulting tools."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from difflib import get_close_matches
from pathlib import Path

from rich.text import Text

from beckon_adapter.check import check_rules
from beckon_cli.errors import CommandError
from beckon_cli.local.services import AGENT, SERVING, ServiceName, called_services, wanted
from beckon_cli.output import out, print_json
from beckon_contract.catalogue.check import Report
from beckon_contract.catalogue.check import check as check_resources
from beckon_contract.catalogue.diagnostics import Finding, warning
from beckon_contract.catalogue.options import LOCAL_COMMAND, LOCAL_URL
from beckon_contract.knative.routes import Listener, read_trigger
from beckon_contract.knative.triggers import GROUP
from beckon_contract.kubernetes_objects import Resource, Unreadable
from beckon_sources.folders import read_file, read_folder


def check(*paths: Path, json: bool = False) -> None:
    """Say what is wrong with EventTypes, Triggers and Agents, what each becomes, and what has no route.

    Exits with 1 where something is wrong; warnings alone are no reason to.

    Parameters
    ----------
    paths
        Files or folders of manifests.
    json
        Print one JSON document instead.
    """
    if not paths:
        raise CommandError("no manifests; name files or folders: beckon check deploy/examples", status=2)
    resources = list(_read_paths(paths))
    report = check_resources(resources)
    readable = [one for one in resources if isinstance(one, Resource)]
    found = (*check_rules(resources), *_missing_services(readable), *_missing_brokers(readable))
    report = replace(report, findings=(*report.findings, *found))
    if json:
        print_json(_report_document(report))
    else:
        _print_report(report)
    if report.errors:
        raise SystemExit(1)


def _read_paths(paths: Iterable[Path]) -> Iterator[Resource | Unreadable]:
    for path in paths:
        if path.is_dir():
            yield from read_folder(path)
        elif path.is_file():
            yield from read_file(path)
        else:
            raise CommandError(f"there is no file or folder {path}", status=2)


def _missing_services(resources: Sequence[Resource]) -> Iterator[Finding]:
    """Yield a warning for each Service that `beckon up` could not call, because no manifest has it."""
    known = {
        ServiceName(one.namespace, one.name)
        for one in resources
        if one.kind == "Service" and one.group in ("", SERVING)
    }
    missing = wanted(resources).missing().keys() - known - {AGENT}
    for resource in resources:
        for name in called_services(resource):
            if name in missing:
                field = "spec.subscriber" if resource.kind == "Trigger" else "spec.reference"
                hint = _suggest(name.name, [one.name for one in known if one.namespace == name.namespace])
                message = (
                    f"no manifest has the Service {name}{hint}; beckon up needs it, with {LOCAL_COMMAND}"
                )
                yield warning(resource, field, f"{message} or {LOCAL_URL}")


def _missing_brokers(resources: Sequence[Resource]) -> Iterator[Finding]:
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


def _suggest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    return f"; did you mean {near[0]}?" if near else ""


def _report_document(report: Report) -> dict[str, object]:
    tools = [
        {
            "name": tool.name,
            "event_type": tool.event_type,
            "namespace": tool.namespace,
            "parameters_from": tool.parameters_from,
            "triggers": list(tool.routes),
        }
        for tool in report.catalogue.tools.values()
    ]
    return {
        "errors": report.errors,
        "findings": [asdict(finding) for finding in report.findings],
        "tools": tools,
        "refused": [asdict(refusal) for refusal in report.catalogue.refusals],
        "skipped": [asdict(skipped) for skipped in report.catalogue.skipped],
    }


def _print_report(report: Report) -> None:
    for finding in report.findings:
        out.print(_finding_line(finding))
    for tool in report.catalogue.tools.values():
        route = f"through Trigger {', '.join(tool.routes)}" if tool.routes else "directly"
        what = f"EventType {tool.namespace}/{tool.event_type}"
        said = f" becomes {tool.name}({', '.join(tool.parameters.get('properties', {}))})"
        out.print(
            Text.assemble(("ok       ", "green"), what, (said, "bold"), f" {route}; {tool.parameters_from}")
        )
    for skipped in report.catalogue.skipped:
        out.print(
            Text(
                f"no tool  EventType {skipped.namespace}/{skipped.event_type}: {skipped.message}", style="dim"
            )
        )
    warnings = len(report.findings) - report.errors
    counts = (("tool", len(report.catalogue.tools)), ("error", report.errors), ("warning", warnings))
    out.print(", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts))


def _finding_line(finding: Finding) -> Text:
    style = "red" if finding.severity == "error" else "yellow"
    what = f"{finding.kind} {finding.namespace}/{finding.name} " if finding.kind else ""
    where = f"({finding.origin}) " if finding.origin else ""
    field = f"{finding.field}: " if finding.field else ""
    return Text.assemble((f"{finding.severity:<9}", style), what, (where, "dim"), field, finding.message)
