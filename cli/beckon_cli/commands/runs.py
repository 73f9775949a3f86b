"""Stored runs and their approvals: `beckon runs`, `approvals`, `approve` and `replay`."""

import asyncio
import time
from typing import Any, Literal

from rich.text import Text

from beckon_cli.client import AgentClient, StoredAnswer, document_of
from beckon_cli.errors import CommandError
from beckon_cli.output import call_text, compact_json, err, out, print_json, print_rows
from beckon_cli.settings import Settings, load_settings
from beckon_runtime.logs import point_to_log

Status = Literal["queued", "running", "suspended", "completed", "incomplete", "failed", "cancelled"]

_MOST = 100
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def runs(*, status: Status | None = None, agent: str = "", limit: int = 20, json: bool = False) -> None:
    """List stored runs, newest first, with their ids for `beckon replay`.

    Parameters
    ----------
    status
        Only runs of this status.
    agent
        Only runs of this agent.
    limit
        How many at most: 1 to 100; else 20.
    json
        Print one JSON document instead.
    """
    page = asyncio.run(_get_page(load_settings(), "/runs", _check_limit(limit), status=status, agent=agent))
    if json:
        print_json(page)
        return
    print_rows(
        [
            (run["id"], run["status"], _time_ago(run["created_at"]), _tool_names(run), run["question"])
            for run in page
        ]
    )
    if not page:
        out.print("no runs")


def approvals(*, limit: int = 20, json: bool = False) -> None:
    """List calls waiting for approval, with their ids for `beckon approve`.

    Parameters
    ----------
    limit
        How many at most: 1 to 100; else 20.
    json
        Print one JSON document instead.
    """
    page = asyncio.run(_get_page(load_settings(), "/approvals", _check_limit(limit)))
    if json:
        print_json(page)
        return
    rows = [
        (one["response"] or one["run"], call_text(one["name"], one["arguments"]), one["question"])
        for one in page
    ]
    print_rows(rows)
    if not page:
        out.print("no call waits for a person")
    elif page[0]["response"]:
        err.print(f"next: beckon approve {page[0]['response']}", style="dim")


async def _get_page(settings: Settings, path: str, limit: int, **query: object) -> list[dict[str, Any]]:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        return await client.get_page(path, limit=limit, **query)


def _check_limit(limit: int) -> int:
    if not 1 <= limit <= _MOST:
        raise CommandError(f"--limit is {limit}; write a number from 1 to {_MOST}", status=2)
    return limit


def _tool_names(run: dict[str, Any]) -> str:
    return ", ".join(
        tool["name"] if tool["calls"] == 1 else f"{tool['name']} ×{tool['calls']}" for tool in run["tools"]
    )


def _time_ago(moment: float) -> str:
    """Return how long ago something was, in one unit."""
    seconds = max(0.0, time.time() - moment)
    for length, unit in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit} ago"
    return "just now"


_APPROVAL = "mcpr_"


def approve(response: str, /, *, deny: bool = False, reason: str = "", json: bool = False) -> None:
    """Approve the calls a response waits for, and print how it continues.

    Each call is decided once; a different second decision is refused. With the id of a single approval,
    only its call is decided, and the command does not wait for the rest.

    Parameters
    ----------
    response
        The id of the response that waits, resp_…, or of one approval, mcpr_…, as `beckon approvals` has it.
    deny
        Do not make the calls; the model gets the refusal and its reason.
    reason
        The reason, for the model and the record of the run.
    json
        Print one JSON document: response, answer, calls, waiting.
    """
    if not response:
        raise CommandError("no response; write for instance: beckon approve resp_0123…", status=2)
    word = {"approve": not deny, **({"reason": reason} if reason else {})}
    approves = _decide_one if response.startswith(_APPROVAL) else _decide_all
    asyncio.run(approves(load_settings(), response, word, as_json=json))


async def _decide_one(settings: Settings, approval: str, word: dict[str, object], *, as_json: bool) -> None:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        decided = await client.decide_approval(approval, word)
    if as_json:
        print_json(decided)
    else:
        out.print(f"{decided['decision']}; what follows: beckon runs")


async def _decide_all(settings: Settings, response: str, word: dict[str, object], *, as_json: bool) -> None:
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        waiting = StoredAnswer(await client.get_response(response))
        if not waiting.questions:
            raise CommandError(f"{response} waits for nothing; it is {waiting.document['status']}")
        answers = [
            {"type": "mcp_approval_response", "approval_request_id": question["id"], **word}
            for question in waiting.questions
        ]
        body = {"model": waiting.document["model"], "previous_response_id": response, "input": answers}
        with err.status("the run goes on …"):
            answer = StoredAnswer(await client.create_response(body))
    if as_json:
        print_json(document_of(answer))
    else:
        answer.show()


_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def replay(run: str, /, *, live_tools: bool = False, yes: bool = False, json: bool = False) -> None:
    """Replay a stored run with its recorded model answers and tool results.

    Sends nothing to the model. Exits with 0 if everything is the same byte for byte, with 1 if something
    differs, and with 2 if there is no replay: no such run, or one that has not ended.

    Parameters
    ----------
    run
        The run, as the id of its response says: resp_…
    live_tools
        Call the tools of today as well, and show their results beside those that were recorded.
    yes
        With --live-tools: call also tools that are not declared read-only. What they do, they do again.
    json
        Print one JSON document instead.
    """
    if not run:
        raise CommandError("no run; write for instance: beckon replay resp_0123…", status=2)
    if yes and not live_tools:
        raise CommandError("--yes is for --live-tools: without it no tool is called", status=2)
    try:
        same = asyncio.run(
            _print_replay(load_settings(), run, _Page(live=live_tools, as_json=json), effects=yes)
        )
    except CommandError as error:
        raise CommandError(str(error), status=2) from None
    if not same:
        raise SystemExit(1)


async def _print_replay(settings: Settings, run: str, page: "_Page", *, effects: bool) -> bool:
    """Print a replay as it arrives; return True if nothing differs.

    Raises `CommandError` for a replay that ends without a report.
    """
    options = {"live_tools": page.live, "effects": effects}
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        with err.status("replaying …") as waiting:
            async for name, document in client.stream_replay(run, options):
                waiting.stop()
                if name == "call":
                    page.call(document)
                elif name == "report":
                    page.report(document)
                    return bool(document["same"])
    raise CommandError(f"the replay broke off; {point_to_log('agent', run)}")


class _Page:
    """The printed output of a replay."""

    def __init__(self, *, live: bool, as_json: bool) -> None:
        self.live = live
        self._as_json = as_json
        self._calls: list[dict[str, Any]] = []

    def call(self, call: dict[str, Any]) -> None:
        """Add one call of a replay with live tools, and print it.

        With `as_json` nothing is printed yet. A call that was not made is marked as such.
        """
        self._calls.append(call)
        if self._as_json:
            return
        note = "" if call["called"] else " (not called)"
        verdict = "the same" if call["same"] else "differs"
        out.print(Text(f"→ {call_text(call['name'], call['arguments'])}{note}", style="cyan"))
        style = "green" if call["same"] else "red"
        shown = f": {compact_json(call['now'])}" if call["same"] else ""
        out.print(Text(f"← {call['name']} {verdict}{shown}", style=style))
        _print_diff(call["diff"])

    def report(self, report: dict[str, Any]) -> None:
        """Print the final report; as JSON, together with the live calls."""
        if self._as_json:
            print_json({**report, "live_calls": self._calls})
            return
        for difference in report["differences"]:
            out.print(Text(f"differs: {difference['where']}", style="red"))
            _print_diff(difference["diff"])
        for note in _notes_on(report):
            err.print(note, style="dim")
        out.print(Text(_verdict_of(report), style="green" if report["same"] else "red"))


def _verdict_of(report: dict[str, Any]) -> str:
    counted = ", ".join(_count_words(report[f"{word}s"], word) for word in ("turn", "call", "event"))
    if report["same"]:
        return f"{report['run']}: the same, byte for byte ({counted})"
    live = report["live_calls"]
    changed = live["all"] - live["same"]
    differ = "result differs" if live["all"] == 1 else "results differ"
    calls = f"{changed} of {live['all']} {differ}" if changed else ""
    others = "the run itself differs" if report["differences"] else ""
    return f"{report['run']}: {' and '.join(filter(None, (calls, others)))} ({counted})"


def _count_words(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _notes_on(report: dict[str, Any]) -> list[str]:
    """Return the notes needed to read the verdict."""
    notes = []
    if report["live_tools"]:
        notes.append(
            "the model got no request: its recorded answers were played, whatever the tools returned"
        )
    if report["requests_unknown"]:
        notes.append(
            f"{report['requests_unknown']} answers were stored without their requests, "
            "so prompt and tools were not compared"
        )
    if report["answers_dropped"]:
        notes.append(f"{report['answers_dropped']} interrupted answers are left out")
    if not report["log_is_whole"]:
        notes.append(f"the run is {report['status']}: it was compared as far as it went")
    return notes


def _print_diff(diff: str) -> None:
    for line in diff.splitlines():
        out.print(Text(f"  {line}", style=_STYLES.get(line[:1], "")))
