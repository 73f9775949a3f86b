"""The result of a probe: a row for each case, as a document and as Markdown."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

TITLES: Mapping[str, str] = {
    "reply-trigger": "filter of the reply Trigger",
    "acknowledgement": "a call is acknowledged",
    "echo": "calls one after the other",
    "parallel": "calls of one tool at once",
    "slow": "a slow tool",
    "refusal": "the tool answers 400",
    "failure": "the tool answers 500",
    "refused-connection": "the tool's address refuses connections",
    "plain-json": "the tool answers with plain JSON",
    "broken-connection": "the tool runs, then its connection breaks",
    "dead-letter": "a dead letter says",
    "reply-correlationid": "the reply copies `correlationid` alone",
    "reply-all-extensions": "the reply copies all extensions",
    "reply-responseid": "the reply has `responseid`, as its EventType says",
    "reply-nothing": "the reply has no token",
    "reply-json": "plain JSON, with `beckon.dev/reply: any`",
    "reply-204": "an answer 204, with `beckon.dev/reply: any`",
    "reply-202": "an answer 202, with `beckon.dev/reply: any`",
    "restart": "the Broker is killed under calls",
}
"""The cases in their order, with their titles."""

NOT_TRIED = "not tried"


class Verdict(StrEnum):
    """The judgement of one case.

    `LIMITED`: calls end as they should, with a limit that the row names. `BAD`: a call of a sound tool fails,
    a tool runs again although it is at work, or an error is found at the deadline only.
    """

    GOOD = "good"
    LIMITED = "limited"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one case.

    `seconds` is the longest time of one call, and `runs` how often a tool got the same call at most. `None`
    means that the case has no such number.
    """

    case: str
    verdict: Verdict
    outcome: str
    seconds: float | None = None
    runs: int | None = None
    dead_letter: str = ""

    @property
    def title(self) -> str:
        """The case in words."""
        return TITLES[self.case]


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of one Broker. `label` names it in a table; `note` says how the rows were measured."""

    broker: str
    label: str
    rows: tuple[Row, ...]
    options: Mapping[str, object] = field(default_factory=dict)
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all rows."""
        verdicts = {row.verdict for row in self.rows}
        return next((each for each in (Verdict.BAD, Verdict.LIMITED) if each in verdicts), Verdict.GOOD)

    def row(self, case: str) -> Row | None:
        """Return the row of a case, `None` if it was not tried."""
        return next((row for row in self.rows if row.case == case), None)

    def document(self) -> dict[str, object]:
        """Return the report for programs."""
        return {
            "broker": self.broker,
            "label": self.label,
            "note": self.note,
            "verdict": self.verdict,
            "options": dict(self.options),
            "rows": [{"title": row.title, **asdict(row)} for row in self.rows],
        }


def parse_report(document: Mapping[str, Any]) -> Report:
    """Return the report in a document of `Report.document`. Raises `KeyError` or `ValueError` for another."""
    rows = tuple(
        Row(
            case=each["case"],
            verdict=Verdict(each["verdict"]),
            outcome=each["outcome"],
            seconds=each.get("seconds"),
            runs=each.get("runs"),
            dead_letter=each.get("dead_letter", ""),
        )
        for each in document["rows"]
    )
    unknown = [row.case for row in rows if row.case not in TITLES]
    if unknown:
        raise ValueError(f"there are no cases {', '.join(unknown)}")
    return Report(
        document["broker"], document["label"], rows, document.get("options", {}), document.get("note", "")
    )


def describe_row(row: Row) -> str:
    """Return what happened in one text, for a cell of a table."""
    parts = [row.outcome]
    if row.seconds is not None and row.seconds >= 1:
        parts.append(f"{row.seconds:.0f} s")
    if row.runs is not None and row.runs > 1:
        parts.append(f"the tool ran {row.runs} times")
    if row.dead_letter:
        parts.append(f"dead letter: {row.dead_letter}")
    return "; ".join(parts)


def to_markdown(reports: Sequence[Report]) -> str:
    """Return the reports as one table with a column for each Broker."""
    lines = [
        _table_line(["", *(report.label for report in reports)]),
        _table_line(["---"] * (len(reports) + 1)),
    ]
    for case, title in TITLES.items():
        rows = [report.row(case) for report in reports]
        if any(rows):
            cells = [f"**{row.verdict}**: {describe_row(row)}" if row else NOT_TRIED for row in rows]
            lines.append(_table_line([title, *cells]))
    return "\n".join(lines) + "\n"


def _table_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
