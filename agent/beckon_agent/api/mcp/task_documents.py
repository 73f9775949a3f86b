"""The documents of tasks: a stored run with one call, as a task of MCP.

The shape is that of the extension `io.modelcontextprotocol/tasks` (SEP-2663). This module does not import
the SDK, so the face can be built without it.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.records import FINAL, StoredCall, StoredRun
from beckon_agent.durable.base import Engine
from beckon_agent.store.base import Store

_SILENCE = 30.0  # seconds; proxies cut a connection on which nothing is sent for longer
_SHORTEST_POLL, _LONGEST_POLL = 1.0, 30.0  # seconds
_POLLS = 10  # a client polls about so often in the age of its task


@dataclass(frozen=True, slots=True)
class TaskRuns:
    """The stored runs behind tasks. Ended ones are retained for `keep_seconds`, `None` is for ever."""

    engine: Engine
    store: Store
    keep_seconds: float | None = None


def is_slow(name: object, hosted: AgentHandle) -> bool:
    """Return True for the name of a tool that may be silent for longer than a connection lasts."""
    tool = hosted.catalogue.current.tools.get(name) if isinstance(name, str) else None
    return tool is not None and (tool.timeout or hosted.agent.limits.call_timeout) > _SILENCE


def task_members(run: StoredRun, call: StoredCall | None, keep_seconds: float | None) -> dict[str, object]:
    """Return the members of a `Task`, without its result.

    `call` is the call of the run, if it is stored already. The run is retained for `keep_seconds` after its
    end, `None` is for ever.
    """
    status, message = _status_of(run, call)
    ended = run.ended_at
    # Only ended runs are deleted, so a task in progress has no limit.
    ttl = (
        None
        if keep_seconds is None or ended is None
        else round((ended - run.created_at + keep_seconds) * 1000)
    )
    age = time.time() - run.created_at
    return {
        "taskId": run.id,
        "status": status,
        **({"statusMessage": message} if message else {}),
        "createdAt": _to_timestamp(run.created_at),
        "lastUpdatedAt": _to_timestamp(_last_change(run, call)),
        "ttlMs": ttl,
        "pollIntervalMs": round(min(_LONGEST_POLL, max(_SHORTEST_POLL, age / _POLLS)) * 1000),
    }


def _status_of(run: StoredRun, call: StoredCall | None) -> tuple[str, str]:
    """Return the status of a task, and a sentence about it or ""."""
    if run.status == "cancelled":
        return "cancelled", "the task was cancelled; the tool may have had its effect"
    if run.status in FINAL and call is not None and call.state == "done":
        return "completed", ""
    if run.status in FINAL:
        return "failed", (run.error or {}).get("message", "the task ended without a result")
    if call is not None and call.report is not None:
        return "working", _report_text(call.report)
    accepted = call is not None and call.state == "accepted"
    return "working", "the tool has accepted the call, and answers later" if accepted else ""


def _report_text(report: Mapping[str, Any]) -> str:
    done, total, message = report.get("progress"), report.get("total"), report.get("message")
    numbers = f"{done}" if total is None else f"{done} of {total}"
    return f"{message} ({numbers})" if message else numbers


def _last_change(run: StoredRun, call: StoredCall | None) -> float:
    """Return the time of the last known change of a task, in seconds since the epoch."""
    times = [run.created_at, run.ended_at]
    if call is not None:
        times += [call.sent_at, call.decided_at, call.finished_at]
    return max(one for one in times if one is not None)


def _to_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
