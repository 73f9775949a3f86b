"""Stored calls of MCP clients: runs with one call and no model, runs of agents, and both as tasks.

The documents have the shape of the extension `io.modelcontextprotocol/tasks` (SEP-2663). This module does not
import the SDK, so the face can be built without it.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.api.mcp.agent_tool import RUN_AGENT, agent_behind
from beckon_agent.api.responses.stream import events_of_turns
from beckon_agent.core import json_values
from beckon_agent.core.context import current_principal
from beckon_agent.core.records import FINAL, MCP_FACE, Decision, NewRun, Past, StoredCall, StoredRun
from beckon_agent.core.run_events import CallFinished, TextDelta
from beckon_agent.core.run_types import Options
from beckon_agent.durable.base import Ask, Engine
from beckon_agent.store.base import Store
from beckon_agent.tool_calls.validation import PreparedCall

_SILENCE = 30.0  # seconds; proxies cut a connection on which nothing is sent for longer
_SHORTEST_POLL, _LONGEST_POLL = 1.0, 30.0  # seconds
_POLLS = 10  # a client polls about so often in the age of its task


@dataclass(frozen=True, slots=True)
class StoredCalls:
    """Starts and finds stored calls. Ended ones are retained for `keep_seconds`, `None` is for ever."""

    engine: Engine
    store: Store
    keep_seconds: float | None = None

    async def start_call(self, hosted: AgentHandle, call: PreparedCall) -> StoredRun:
        """Store and begin the call of a tool, or the run of an agent that is one.

        Raises the errors of `Engine.start`.
        """
        requested, agent = call.tool_call, agent_behind(hosted, call.tool_call.name)
        text = f"{requested.name} {requested.arguments}" if agent is None else call.arguments["message"]
        new = NewRun(
            id=f"task_{secrets.token_hex(16)}",
            owner=current_principal().id,
            agent=hosted.name,
            face=MCP_FACE,
            input=[{"role": "user", "content": text}],
            background=True,
        )
        options = Options(requested_call=requested) if agent is None else Options()
        return await self.engine.start(Ask(new, agent or hosted, options))

    async def read_end(self, run: StoredRun, past: Past | None = None) -> CallFinished | None:
        """Return the end of a stored call or of an agent's run; `None` for one without a result."""
        past = past or await self.store.runs.load_past(run.id)
        if is_call(run):
            call = past.calls[0] if past.calls else None
            if call is None or call.state != "done":
                return None
            return CallFinished(call.id, call.name, call.result, call.failed, call.seconds or 0.0)
        if run.status not in ("completed", "incomplete"):
            return None
        text = "".join(event.text for event in events_of_turns(run, past) if isinstance(event, TextDelta))
        return CallFinished(run.id, RUN_AGENT, text, run.status == "incomplete", 0.0)

    async def find_run(self, run_id: str, hosted: AgentHandle) -> StoredRun | None:
        """Return the run of a stored call of this agent and of the current principal."""
        run = await self.store.runs.get(run_id)
        if run is None or run.face != MCP_FACE or run.agent != hosted.name:
            return None
        return run if run.owner == current_principal().id else None

    async def decide_call(self, event_id: str, decision: Decision, reason: str = "") -> None:
        """Decide on a call that waits for an approval; later decisions are ignored."""
        await self.engine.decide_call(event_id, decision, by=current_principal().id, reason=reason)


def is_slow(name: object, hosted: AgentHandle) -> bool:
    """Return True for the name of a tool that may be silent for longer than a connection lasts."""
    tool = hosted.catalogue.current.tools.get(name) if isinstance(name, str) else None
    return tool is not None and (tool.timeout or hosted.agent.limits.call_timeout) > _SILENCE


def is_call(run: StoredRun) -> bool:
    """Return True for the run of one requested call, False for the run of an agent."""
    return bool(json_values.as_mapping(run.request.get("options")).get("requested_call"))


def task_members(
    run: StoredRun, calls: Sequence[StoredCall], keep_seconds: float | None
) -> dict[str, object]:
    """Return the members of a `Task`, without its result.

    `calls` are those of the run so far. It is retained for `keep_seconds` after its end, `None` is for ever.
    """
    status, message = _status_of(run, calls)
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
        "lastUpdatedAt": _to_timestamp(_last_change(run, calls)),
        "ttlMs": ttl,
        "pollIntervalMs": round(min(_LONGEST_POLL, max(_SHORTEST_POLL, age / _POLLS)) * 1000),
    }


def _status_of(run: StoredRun, calls: Sequence[StoredCall]) -> tuple[str, str]:
    """Return the status of a task, and a sentence about it or ""."""
    if run.status == "cancelled":
        return "cancelled", "the task was cancelled; a tool may have had its effect"
    if run.status in FINAL:
        has_result = any(call.state == "done" for call in calls) if is_call(run) else run.status != "failed"
        message = (run.error or {}).get("message", "the task ended without a result")
        return ("completed", "") if has_result else ("failed", message)
    states = {call.state for call in calls}
    if "approval" in states:
        return "input_required", "a call waits for a person's approval"
    if "input" in states:
        return "input_required", "a tool waits for a person's input"
    waiting = [call for call in calls if call.state in ("sent", "accepted")]
    reports = [_report_text(call.report) for call in waiting if call.report is not None]
    if reports:
        return "working", reports[-1]
    accepted = any(call.state == "accepted" for call in waiting)
    return "working", "the tool has accepted the call, and answers later" if accepted else ""


def _report_text(report: Mapping[str, Any]) -> str:
    done, total, message = report.get("progress"), report.get("total"), report.get("message")
    numbers = f"{done}" if total is None else f"{done} of {total}"
    return f"{message} ({numbers})" if message else numbers


def _last_change(run: StoredRun, calls: Sequence[StoredCall]) -> float:
    """Return the time of the last known change of a task, in seconds since the epoch."""
    times = [run.created_at, run.ended_at]
    for call in calls:
        times += [call.sent_at, call.decided_at, call.finished_at]
    return max(one for one in times if one is not None)


def _to_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
