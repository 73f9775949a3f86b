"""What tools report of calls that nobody holds a connection for: the newest of each, as it is stored."""

from collections.abc import Sequence

from beckon_agent.runs import CallProgressed
from beckon_agent.store.records import StoredCall


class Heard:
    """What one follower of a run has heard of that already."""

    def __init__(self) -> None:
        self._last: dict[str, CallProgressed] = {}

    def news(self, calls: Sequence[StoredCall]) -> list[CallProgressed]:
        """Return the reports that are new to it."""
        found = [_told(call) for call in calls if call.report]
        new = [report for report in found if self._last.get(report.id) != report]
        self._last |= {report.id: report for report in new}
        return new


def _told(call: StoredCall) -> CallProgressed:
    report = call.report or {}
    return CallProgressed(
        call.id, call.name, report["progress"], report.get("total"), report.get("message") or ""
    )
