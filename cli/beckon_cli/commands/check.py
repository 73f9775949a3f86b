"""`beckon check`: problems in EventTypes, Triggers and Agents, and the resulting tools."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path

from rich.text import Text

from beckon_adapter.check import check_rules
from beckon_cli.errors import CommandError
from beckon_cli.output import out, print_json
from beckon_contract.catalogue.check import Report
from beckon_contract.catalogue.check import check as check_resources
from beckon_contract.catalogue.diagnostics import Finding
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
    report = replace(report, findings=(*report.findings, *check_rules(resources)))
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
