"""The steps common to every `beckon import`.

Once a source can be read, its tools are listed, compared, printed or written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Protocol

from cyclopts import Parameter
from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.importing import report
from beckon_cli.importing.candidates import ImportSource, NoSource, Tool
from beckon_cli.importing.manifests import ADAPTER, NotOurs, Placement, manifest_files, write_files
from beckon_cli.importing.report import find_differences
from beckon_cli.output import err, out, print_json


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ManifestOptions:
    """Options for the manifests: folder, Broker, namespace and adapter."""

    output: Annotated[
        Path | None, Parameter(help="Write a file for each tool into this folder; else print them.")
    ] = None
    single: Annotated[bool, Parameter(negative=(), help="Write one file with everything.")] = False
    broker: Annotated[str, Parameter(help="The Broker of the Triggers; else default.")] = "default"
    namespace: Annotated[str, Parameter(help="The namespace; else that of kubectl.")] = ""
    adapter: Annotated[
        str, Parameter(help="The URL of the HTTP adapter, as the Broker sees it; else the chart's.")
    ] = ADAPTER


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class ReportOptions:
    """Options for the action and its report: list, diff, strict, JSON."""

    list_: Annotated[
        bool,
        Parameter(
            name="--list", negative=(), help="Show what there is and what it would be called; write nothing."
        ),
    ] = False
    diff: Annotated[
        bool,
        Parameter(
            negative=(),
            help="Show what differs from the folder, and write nothing; exit with 1 where something does.",
        ),
    ] = False
    strict: Annotated[bool, Parameter(negative=(), help="Exit with 1 where something was skipped.")] = False
    json: Annotated[
        bool,
        Parameter(negative=(), help="Print what was done as one JSON document; needs --output or --list."),
    ] = False


class ImportedFiles(Protocol):
    """The files made beside the manifests."""

    def document(self) -> dict[str, object]:
        """Return a JSON document about them, for programs."""
        ...

    def lines(self) -> Iterator[Text]:
        """Yield lines about them, for people."""
        ...


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """A project around the manifests: their folder, and a function.

    `make` writes the rest of the project.
    """

    folder: Path
    make: Callable[[ImportSource[Tool]], ImportedFiles]


def find_and_import(
    find: Callable[[], ImportSource[Tool]],
    where: ManifestOptions,
    how: ReportOptions,
    project: ImportTarget | None = None,
) -> None:
    """Find the tools, then list, compare, print or write them.

    Raises `CommandError`, with status 2 for wrong flags, a source that cannot be imported as requested, or
    a file of another author in the folder. Raises `SystemExit` with the result of `--diff`, and with 1 if
    `--strict` is given and something was skipped.
    """
    folder = project.folder if project else where.output
    if how.diff and folder is None:
        raise CommandError("--diff needs the folder to compare with: name it by --output", status=2)
    if how.json and not (how.list_ or folder):
        raise CommandError("--json needs --output or --list: without them manifests are printed", status=2)
    try:
        source = find()
        if how.diff and folder:
            raise SystemExit(_show_differences(source, folder, json=how.json))
        if how.list_:
            _show_found(source, json=how.json)
        else:
            _write_found(source, where, project, json=how.json)
    except (NoSource, NotOurs) as error:
        raise CommandError(str(error), status=2) from None
    except OSError as error:
        raise CommandError(f"cannot read or write {error.filename or folder}: {error.strerror}") from None
    _require_tools(source, strict=how.strict)


def _require_tools(source: ImportSource[Tool], *, strict: bool) -> None:
    """Fail with status 1 if nothing could be imported.

    With `strict`, fail as well if anything was skipped.
    """
    if not source.tools:
        raise CommandError(f"no {source.noun} could be imported; the reasons stand above")
    if strict and source.skipped:
        raise SystemExit(1)


def _show_differences(source: ImportSource[Tool], folder: Path, *, json: bool) -> int:
    """Show the changes an import would make in the folder.

    Returns 1 if there are any, else 0.
    """
    changed = list(find_differences(folder, source))
    if json:
        print_json(report.differences_document(source, changed))
    else:
        for line in report.list_differences(source, changed):
            out.print(line)
    return bool(changed)


def _show_found(source: ImportSource[Tool], *, json: bool) -> None:
    if json:
        print_json(report.report_document(source))
        return
    for line in report.list_items(source):
        out.print(line)


def _write_found(
    source: ImportSource[Tool], where: ManifestOptions, project: ImportTarget | None, *, json: bool
) -> None:
    placement = Placement(where.adapter, where.broker, where.namespace)
    written = list(manifest_files(source, placement, single=where.single))
    folder = project.folder if project else where.output
    if folder is None:
        for file in written:
            print(file.text, end="")
        for line in report.report_import(source, None):
            err.print(line)
        return
    changes = write_files(folder, written, source.origin, source.present)
    project_files = project.make(source) if project and source.tools else None
    if json:
        print_json(
            {
                **report.report_document(source, changes),
                **({"project": project_files.document()} if project_files else {}),
            }
        )
        return
    for line in (*report.report_import(source, changes), *(project_files.lines() if project_files else ())):
        out.print(line)
