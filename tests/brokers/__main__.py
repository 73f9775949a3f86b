"""Write the report of a Broker for the documents: `python -m tests.brokers embedded jetstream rabbitmq`.

The suite runs with its default deadlines, so each Broker takes two minutes. The reports are in `docs/probes`;
`make docs` makes the table of docs/brokers.md from them.
"""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import orjson

from beckon_cli.probe.cases import ProbeOptions
from tests.brokers.brokers import EMBEDDED, JETSTREAM, RABBITMQ, Requirement, probe

REPORTS = Path(__file__).resolve().parents[2] / "docs" / "probes"
BROKERS: Mapping[str, Requirement] = {"embedded": EMBEDDED, "jetstream": JETSTREAM, "rabbitmq": RABBITMQ}


def main(names: Sequence[str]) -> int:
    """Return 0, or 2 for an unknown name."""
    if not names or not set(names) <= set(BROKERS):
        sys.stderr.write(f"name one or more of: {', '.join(BROKERS)}\n")
        return 2
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            report = probe(replace(BROKERS[name], options=ProbeOptions()), Path(folder))
        write_report(name, report.document())
    return 0


def write_report(name: str, document: Mapping[str, object]) -> None:
    """Write a report, with times rounded as the table shows them."""
    rows = document["rows"]
    assert isinstance(rows, list)
    for row in rows:
        if row["seconds"] is not None:
            row["seconds"] = round(row["seconds"], 1)
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    (REPORTS / f"{name}.json").write_bytes(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
