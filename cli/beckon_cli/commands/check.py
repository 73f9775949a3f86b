"""`beckon check`: problems in EventTypes, Triggers and Agents, and the resulting tools."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from rich.text import Text

from beckon_adapter.check import check_rules
from beckon_cli.errors import CommandError
from beckon_cli.local.manifest_report import describe_finding, missing_brokers, missing_services
from beckon_cli.output import out, print_json
from beckon_contract.catalogue.check import Report
from beckon_contract.catalogue.check import check as check_resources
from beckon_contract.catalogue.diagnostics import Finding
from beckon_contract.kubernetes_objects import Resource, Unreadable
from beckon_contract.resources.tools import Tool
from beckon_sources.folders import read_file, read_folder


def check(*paths: Path, json: bool = False) -> None:
    """Check EventTypes, Triggers and Agents: errors, the tools they become, and calls without a route.

    Exits with 1 if there are errors; warnings alone exit with 0.

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
    findings = (*check_rules(resources), *missing_services(readable), *missing_brokers(readable))
    report = replace(report, findings=(*report.findings, *findings))
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


def _report_document(report: Report) -> dict[str, object]:
    tools = [
        {
            "name": tool.name,
            "event_type": tool.event_type,
            "namespace": tool.namespace,
            "parameters_from": tool.parameters_from,
            "triggers": list(tool.routes),
            "reply": tool.reply,
            "reply_attribute": tool.reply_attribute,
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
        signature = f" becomes {tool.name}({', '.join(tool.parameters.get('properties', {}))})"
        rest = f" {route}; {tool.parameters_from}{_reply_rules(tool)}"
        out.print(Text.assemble(("ok       ", "green"), what, (signature, "bold"), rest))
    for skipped in report.catalogue.skipped:
        out.print(
            Text(
                f"no tool  EventType {skipped.namespace}/{skipped.event_type}: {skipped.message}", style="dim"
            )
        )
    warnings = len(report.findings) - report.errors
    counts = (("tool", len(report.catalogue.tools)), ("error", report.errors), ("warning", warnings))
    out.print(", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts))


def _reply_rules(tool: Tool) -> str:
    """Return what an EventType says of its replies, empty for the usual ones."""
    rules = "; any answer is the reply" if tool.reply == "any" else ""
    return rules + (f"; replies name the call in {tool.reply_attribute}" if tool.reply_attribute else "")


def _finding_line(finding: Finding) -> Text:
    style = "red" if finding.severity == "error" else "yellow"
    return Text.assemble((f"{finding.severity:<9}", style), describe_finding(finding))
