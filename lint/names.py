"""Refuse names that a new reader cannot know.

Four rules, for every room (the folders ROOM/beckon_ROOM). The first is for tests, benches and tools, too:

  word      a function, class, argument, variable, attribute or module has a banned word in its name
  namesake  a class has the name of a class in another module of its room
  fragment  a module of less than 60 lines is imported by exactly one other: it belongs there
  absent    a docstring has a name in backticks that the code near it does not have

The cure is a standard term: docs/glossary.md lists those of this code base, and the banned words with
what to write instead.

Exit code 0 when nothing is found, 1 when something is, 2 when the source cannot be read.
"""

import argparse
import sys
from pathlib import Path

from lint.docstrings import find_absent_names
from lint.rules import find_all, find_banned_words
from lint.source import ROOT, BadSource, read_checks, read_modules


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    """Return the options; argparse prints the help, which is the text at the top of this module."""
    parser = argparse.ArgumentParser(
        prog="python -m lint.names",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the checkout (default: this one)")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Print one line for each finding, and their number; return the exit code of the module's docstring."""
    root = parse_options(arguments).root
    try:
        modules = read_modules(root)
        in_checks = find_banned_words(read_checks(root))
        findings = sorted([*find_all(modules), *find_absent_names(modules), *in_checks])
    except (BadSource, OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"python -m lint.names: {error}\n")
        return 2
    for finding in findings:
        sys.stdout.write(f"{finding}\n")
    cure = "; `python -m lint.names --help` explains the rules" if findings else ""
    sys.stdout.write(f"Names: {len(findings)} to change{cure}\n")
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
