"""Refuse names that a new reader cannot know.

Four rules, for every room (the folders ROOM/beckon_ROOM). The first is for tests, benches and tools, too:

  word      a function, class, argument, variable, attribute or module has a banned word in its name
  namesake  a class has the name of a class in another module of its room
  fragment  a module of less than 60 lines is imported by exactly one other: it belongs there
  absent    a docstring has a name in backticks that the code near it does not have

The cure is a standard term: docs/glossary.md lists those of this code base, and the banned words with
what to write instead.

lint/exceptions.txt lists the names that are older than the rules, sorted, one a line: PATH RULE NAME.
It only shrinks: a line that no name needs any more is an error, too, and `--prune` removes such lines.
No command adds one. When a file moves, change the path in its lines.

Exit code 0 when nothing is found, 1 when something is, 2 when the source or the list cannot be read.
"""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

from lint.docstrings import find_absent_names
from lint.rules import Finding, find_all, find_banned_words
from lint.source import ROOT, BadSource, read_checks, read_modules

EXCEPTIONS = Path(__file__).with_name("exceptions.txt")
_RULES = ("word", "namesake", "fragment", "absent")


class BadList(Exception):
    """A list of exceptions with a line that is none; the text says which and what to do."""


@dataclass(frozen=True, slots=True)
class Report:
    """What is wrong with the names, and which lines of the list nothing needs, by their numbers."""

    findings: list[Finding]
    stale: dict[int, str]


def read_exceptions(path: Path) -> list[str]:
    """Return the lines of a list; raise `BadList` for one that is malformed, out of order or there twice."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        parts = line.split(" ")
        if len(parts) != 3 or parts[1] not in _RULES:
            raise BadList(
                f"{path}:{number}: {line!r} is not PATH RULE NAME; the rules are {', '.join(_RULES)}"
            )
        if number > 1 and line <= lines[number - 2]:
            raise BadList(
                f"{path}:{number}: out of order, or there twice; run: LC_ALL=C sort -u -o {path} {path}"
            )
    return lines


def compare(findings: list[Finding], exceptions: list[str]) -> Report:
    """Return the findings without an exception, and the exceptions without a finding."""
    found = {finding.key for finding in findings}
    listed = set(exceptions)
    stale = {number: line for number, line in enumerate(exceptions, start=1) if line not in found}
    return Report([finding for finding in findings if finding.key not in listed], stale)


def prune(path: Path, exceptions: list[str], findings: list[Finding]) -> list[str]:
    """Write the list without the lines that nothing needs, and return what is left."""
    found = {finding.key for finding in findings}
    needed = [line for line in exceptions if line in found]
    path.write_text("".join(f"{line}\n" for line in needed), encoding="utf-8")
    return needed


def shorten(path: Path) -> Path:
    """Return a path as seen from the working directory, where it is below that."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def print_report(report: Report, path: Path, count: int) -> None:
    """Print one line a finding and one a stale exception, then the sum."""
    for finding in report.findings:
        sys.stdout.write(f"{finding}\n")
    for number, line in report.stale.items():
        sys.stdout.write(
            f"{path}:{number}: {line}: nothing needs this exception any more; remove this line\n"
        )
    if report.findings or report.stale:
        sys.stdout.write(
            f"{len(report.findings)} names to change, {len(report.stale)} exceptions to remove "
            "(`python -m lint.names --prune` removes them; `--help` explains the rules)\n"
        )
    else:
        sys.stdout.write(f"Names: nothing new to change; {count} exceptions are left.\n")


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options; argparse prints the help, which is the text at the top of this module."""
    parser = argparse.ArgumentParser(
        prog="python -m lint.names",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the checkout (default: this one)")
    parser.add_argument("--exceptions", type=Path, default=EXCEPTIONS, metavar="FILE", help="another list")
    parser.add_argument("--prune", action="store_true", help="remove the exceptions that nothing needs")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print what is wrong; return the exit code of the module's docstring."""
    options = parse_options(arguments)
    path = shorten(options.exceptions)
    try:
        exceptions = read_exceptions(path)
        modules = read_modules(options.root)
        in_checks = find_banned_words(read_checks(options.root))
        findings = sorted([*find_all(modules), *find_absent_names(modules), *in_checks])
        if options.prune:
            exceptions = prune(path, exceptions, findings)
    except (BadSource, BadList, OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"python -m lint.names: {error}\n")
        return 2
    report = compare(findings, exceptions)
    print_report(report, path, len(exceptions))
    return int(bool(report.findings or report.stale))


if __name__ == "__main__":
    sys.exit(main())
