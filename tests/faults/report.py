"""What became of each call, as a table with a row for each part that was killed and each log."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from tests.faults.load import Run
from tests.faults.outside import AGAIN, ONCE, TOOLS, result
from tests.faults.site import JETSTREAM

RIGHT, LOST, HUNG, WRONG = "right", "lost", "hung", "wrong"

HEADER = (
    "| killed | log | calls | idempotent tool | other tool | lost | hung | wrong | effect twice "
    "| median s | longest s |"
)

_BEGIN, _END = "<!-- faults -->", "<!-- end -->"


@dataclass(slots=True)
class Row:
    """The ends of the calls that began while one part was killed again and again, by tool."""

    killed: str
    log: str
    ends: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in TOOLS})
    twice: int = 0
    seconds: list[float] = field(default_factory=list)

    def count(self, end: str) -> int:
        """Return how many calls ended like this."""
        return sum(counter[end] for counter in self.ends.values())

    @property
    def calls(self) -> int:
        """The number of calls."""
        return sum(counter.total() for counter in self.ends.values())

    def line(self) -> str:
        """Return the row as Markdown."""
        cells = [self.killed, self.log, self.calls, _describe(self.ends[AGAIN]), _describe(self.ends[ONCE])]
        cells += [self.count(LOST), self.count(HUNG), self.count(WRONG), self.twice]
        cells += [f"{median(self.seconds):.1f}", f"{max(self.seconds):.1f}"]
        return f"| {' | '.join(map(str, cells))} |"

    def broken_promises(self) -> list[str]:
        """Return what must not be. The durable log promises an idempotent tool's answer besides."""
        counts = {end: self.count(end) for end in (LOST, HUNG, WRONG)} | {"with a second effect": self.twice}
        broken = [f"{count} {end}" for end, count in counts.items() if count]
        failed = self.ends[AGAIN].total() - self.ends[AGAIN][RIGHT]
        if self.log == JETSTREAM and failed:
            broken.append(f"{failed} of an idempotent tool without the right answer")
        return [f"{self.killed} killed, log {self.log}: {text}" for text in broken]


def rows_of(runs: Iterable[Run], effects: Counter[tuple[str, str]]) -> list[Row]:
    """Return the rows of these runs, in the order in which they began."""
    rows: dict[tuple[str, str], Row] = {}
    for run in runs:
        row = rows.setdefault(run.row, Row(*run.row))
        row.seconds.append(run.seconds)
        for name in TOOLS:
            row.ends[name][end_of(run, name, effects[name, run.name])] += 1
            # A request that was made again has an effect of its own, under its own name.
            row.twice += any(effects[name, each] > 1 for each in _names(run))
    return list(rows.values())


def end_of(run: Run, name: str, effects: int) -> str:
    """Return the outcome of a tool's call: one of the words above, or the reason of a failure."""
    if run.refusal:
        return run.refusal
    if run.response is None:
        return HUNG
    called = [item for item in run.response["output"] if item.get("name") == f"faults_{name}"]
    if not called:
        error = run.response.get("error") or {}
        return f"run {run.response['status']}: {error.get('code')}" if error else LOST
    [item] = called
    if item["status"] == "failed":
        return str(item["error"]["content"]["reason"])
    right = item["status"] == "completed" and item["output"] == result(name, run.name) and effects
    return RIGHT if right else WRONG


def table(rows: Sequence[Row]) -> str:
    """Return the table as Markdown."""
    order = {killed: number for number, killed in enumerate(dict.fromkeys(row.killed for row in rows))}
    lines = [HEADER, "| --- " * HEADER.count("| ") + "|"]
    lines += [row.line() for row in sorted(rows, key=lambda row: (order[row.killed], row.log))]
    return "\n".join(lines) + "\n"


def write_page(page: Path, text: str) -> None:
    """Put a table between the two marks of a page."""
    before, found, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, ended, after = rest.partition(_END)
    assert found, page
    assert ended, page
    page.write_text(f"{before}{_BEGIN}\n\n{text}\n{_END}{after}", encoding="utf-8")


def _names(run: Run) -> list[str]:
    base = run.name.rstrip("+")
    return [base + "+" * number for number in range(len(run.name) - len(base) + 1)]


def _describe(ends: Counter[str]) -> str:
    others = [
        f"{count} `{end}`" for end, count in ends.most_common() if end not in {RIGHT, LOST, HUNG, WRONG}
    ]
    return ", ".join([f"{ends[RIGHT]} right", *others])
