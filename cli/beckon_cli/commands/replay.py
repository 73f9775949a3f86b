"""`beckon replay`: a stored run played again, byte for byte, or against the tools of today."""

import asyncio
from typing import Any

from rich.text import Text

from beckon_cli.client import AgentClient
from beckon_cli.errors import CommandError
from beckon_cli.output import call_text, compact_json, err, out, print_json
from beckon_cli.settings import Settings, load_settings

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def replay(run: str, /, *, live_tools: bool = False, yes: bool = False, json: bool = False) -> None:
    """Play a stored run again, with the model's answers and the results of its calls as recorded.

    The model is never asked. Exits with 0 where everything is the same byte for byte, 1 where something
    differs, and 2 where there is no replay: no such run, or one that has not ended.

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
    wish = {"live_tools": page.live, "effects": effects}
    async with AgentClient(settings.url, settings.api_key.get_secret_value()) as client:
        with err.status("replaying …") as waiting:
            async for name, document in client.stream_replay(run, wish):
                waiting.stop()
                if name == "call":
                    page.call(document)
                elif name == "report":
                    page.report(document)
                    return bool(document["same"])
    raise CommandError("the replay broke off; the log of the agent has the details")


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
        made = "" if call["called"] else " (not called)"
        verdict = "the same" if call["same"] else "differs"
        out.print(Text(f"→ {call_text(call['name'], call['arguments'])}{made}", style="cyan"))
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
        notes.append("the model was not asked: its recorded answers were played, whatever the tools said")
    if report["requests_unknown"]:
        notes.append(
            f"for {report['requests_unknown']} answers it is not kept what the model was asked, "
            "so prompt and tools were not compared"
        )
    if report["answers_dropped"]:
        notes.append(f"{report['answers_dropped']} answers were begun in vain and are left out")
    if not report["log_is_whole"]:
        notes.append(f"the run is {report['status']}: it was compared as far as it went")
    return notes


def _print_diff(diff: str) -> None:
    for line in diff.splitlines():
        out.print(Text(f"  {line}", style=_STYLES.get(line[:1], "")))
