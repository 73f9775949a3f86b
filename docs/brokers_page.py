"""Write the tables of docs/brokers.md: `python docs/brokers_page.py`.

Those of the probe are made from the reports in docs/probes. `python -m tests.brokers` makes the reports of
Brokers on this machine, and those measured by hand have a note. The table of Knative's requirements is made
from docs/conformance.yaml. With `--check` nothing is written; the status is 1 if the page differs.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from beckon_cli.probe.report import parse_report, to_markdown

PAGE = Path(__file__).with_name("brokers.md")
REPORTS = Path(__file__).with_name("probes")
CONFORMANCE = Path(__file__).with_name("conformance.yaml")
_PROBES = re.compile(r"(<!-- probes: ([a-z -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_REQUIREMENTS = re.compile(r"(<!-- conformance -->\n).*?(<!-- end -->)", re.DOTALL)


def make_table(names: Sequence[str]) -> str:
    """Return the table of these reports."""
    return to_markdown(
        [parse_report(orjson.loads((REPORTS / f"{name}.json").read_bytes())) for name in names]
    )


def make_conformance(sections: Sequence[Mapping[str, Any]]) -> str:
    """Return the tables of the requirements, one for each section."""
    return "\n".join(map(_make_section, sections))


def fill_page(text: str) -> str:
    """Return the page with all its tables."""
    sections = yaml.safe_load(CONFORMANCE.read_text("utf-8"))["sections"]
    text = _PROBES.sub(lambda found: f"{found[1]}\n{make_table(found[2].split())}\n{found[3]}", text)
    return _REQUIREMENTS.sub(lambda found: f"{found[1]}\n{make_conformance(sections)}\n{found[2]}", text)


def _make_section(section: Mapping[str, Any]) -> str:
    rows = "\n".join(map(_make_row, section["rows"]))
    head = f"### {section['title']}\n\nFrom {section['source']}.\n"
    return f"{head}\n| requirement | result | tests |\n| --- | --- | --- |\n{rows}\n"


def _make_row(row: Mapping[str, Any]) -> str:
    tests = ", ".join(map(_link, row["tests"]))
    return f"| {row['level']}: {row['says']} | {_describe_result(row)} | {tests} |"


def _describe_result(row: Mapping[str, Any]) -> str:
    if "differs" in row:
        return f"differs: {row['differs']}"
    if "not_applicable" in row:
        return f"does not apply: {row['not_applicable']}"
    return f"met by {row['by']}" if "by" in row else "met"


def _link(test: str) -> str:
    path, function = test.split("::")
    return f"[{function.removeprefix('test_')}](../tests/{path})"


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    filled = fill_page(page)
    if "--check" in sys.argv[1:]:
        sys.exit(page != filled)
    PAGE.write_text(filled, "utf-8")
