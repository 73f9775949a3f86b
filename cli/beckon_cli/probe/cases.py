"""The cases of a probe: what is done, and how the end is judged."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import uuid4

import aiohttp

from beckon_cli.errors import CommandError
from beckon_cli.probe.calls import SOURCE, Caller, CallResult
from beckon_cli.probe.endpoint import Endpoint
from beckon_cli.probe.report import TITLES, Row, Verdict
from beckon_cli.probe.tools import REASON, Tools
from beckon_contract.cloudevents.events import CloudEvent, to_binary
from beckon_shim.calls import REPLY_MODE
from beckon_shim.reply_marks import REPLY_ATTRIBUTE

_ANY = {REPLY_MODE.decode(): "any"}
# What the EventTypes of these tools would say, as headers of their calls.
_HINTS = {
    "reply-responseid": {REPLY_ATTRIBUTE.decode(): "responseid"},
    "reply-json": _ANY,
    "reply-204": _ANY,
    "reply-202": _ANY,
}
_EARLY = 0.9  # of the deadline: an error before counts as found in time


@dataclass(frozen=True, slots=True)
class ProbeOptions:
    """The load and the deadlines of a probe; times are in seconds.

    `wait` is the deadline of calls that should be answered, `silence` that of calls whose tool fails or gives
    no token, `restart_wait` that of calls under a restart. `slow` is the time of the slow tool, `calls` the
    number of calls one after the other and at once. `retry` and `backoff` are the delivery of the Triggers,
    exponential; the defaults are those of Beckon's chart. Under a restart, `rate` calls a second are made for
    `restart_load`. A tool that waits for other calls or an acknowledgement gives up after `patience`. A reply
    Trigger that has brought nothing `settle` after another one counts as one that brings nothing.
    """

    wait: float = 30.0
    silence: float = 30.0
    slow: float = 45.0
    calls: int = 20
    patience: float = 2.0
    settle: float = 3.0
    retry: int = 5
    backoff: float = 0.2
    rate: float = 10.0
    restart_load: float = 10.0
    restart_wait: float = 30.0

    @property
    def error_wait(self) -> float:
        """The deadline of a call whose tool fails: not before the last retry.

        Some Brokers begin the exponential back-off at twice its delay.
        """
        retries: float = sum(self.backoff * 2.0**number for number in range(1, self.retry + 1))
        return max(self.silence, 1.5 * retries)


@dataclass(frozen=True, slots=True)
class Probe:
    """All that a case needs: the Broker's address, the endpoint, the caller, and the name of this run."""

    broker_url: str
    endpoint: Endpoint
    tools: Tools
    caller: Caller
    options: ProbeOptions
    run: str

    def event_type(self, case: str) -> str:
        """Return the event type of a case, which no other run has."""
        return f"beckon.probe.{self.run}.{case}"

    async def call(self, case: str, *, wait: float | None = None, any_data: bool = False) -> CallResult:
        """Make one call of a case; `wait` replaces the deadline of the options."""
        seconds = self.options.wait if wait is None else wait
        hints = _HINTS.get(case, {})
        return await self.caller.call(self.event_type(case), seconds, hints, any_data=any_data)

    async def post(self, case: str, **extensions: str) -> tuple[str, int, float]:
        """Post an event to the Broker itself; return its id, the status, and the seconds to it.

        Raises `CommandError` if no HTTP answer comes.
        """
        event = CloudEvent(
            uuid4().hex,
            SOURCE,
            self.event_type(case),
            b"{}",
            "application/json",
            extensions=dict(extensions),
        )
        headers, body = to_binary(event)
        timeout = aiohttp.ClientTimeout(total=self.options.wait)
        started = time.monotonic()
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self.broker_url, data=body, headers=dict(headers)) as response,
            ):
                await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            cause = str(error) or "no answer in time"
            raise CommandError(f"the Broker at {self.broker_url} takes no event: {cause}", status=2) from None
        return event.id, response.status, time.monotonic() - started

    def runs(self, case: str, results: Iterable[CallResult]) -> int:
        """Return how often the tool got the same call at most."""
        return max((self.endpoint.visits[case].runs[result.id] for result in results), default=0)

    def letter_text(self, results: Iterable[CallResult]) -> str:
        """Describe the dead letters of these calls, "" without any."""
        texts = {
            letter.describe() for result in results for letter in self.endpoint.letters.get(result.id, ())
        }
        return " / ".join(sorted(texts))


async def try_acknowledgement(probe: Probe) -> Row:
    """Post one event for a tool that goes on until it is acknowledged, or loses its patience."""
    _, status, seconds = await probe.post("acknowledgement", correlationid="probe")
    probe.tools.acknowledged.set()
    if not 200 <= status < 300:
        return Row("acknowledgement", Verdict.BAD, f"with status {status}", seconds)
    if not probe.tools.gave_up_acknowledgement:
        return Row("acknowledgement", Verdict.GOOD, "at once", seconds)
    return Row("acknowledgement", Verdict.LIMITED, "after every Trigger is done", seconds)


async def try_echo(probe: Probe) -> Row:
    """Make calls one after the other."""
    results = [await probe.call("echo") for _ in range(probe.options.calls)]
    return _judge_answers(probe, "echo", results, describe_results(results))


async def try_parallel(probe: Probe) -> Row:
    """Make calls of one tool at once; count how many of them the tool has at the same time."""
    count = probe.options.calls
    results = await asyncio.gather(*(probe.call("parallel") for _ in range(count)))
    most = probe.endpoint.visits["parallel"].most
    side = (
        "all side by side" if most == count else "one at a time" if most == 1 else f"at most {most} at once"
    )
    row = _judge_answers(probe, "parallel", results, f"{describe_results(results)}, {side}")
    verdict = Verdict.LIMITED if row.verdict is Verdict.GOOD and most < count else row.verdict
    return replace(row, verdict=verdict, seconds=None)


async def try_slow(probe: Probe) -> Row:
    """Call a tool that works longer than the usual acknowledgement of a message may take."""
    slow = probe.options.slow
    result = await probe.call("slow", wait=probe.options.wait + slow)
    row = _judge_answers(probe, "slow", [result], f"{result.describe()}, after {slow:g} s of work")
    return replace(row, verdict=Verdict.BAD) if (row.runs or 0) > 1 else row


async def try_error(probe: Probe, case: str) -> Row:
    """Call a tool that fails; the error should come before the deadline and give its reason.

    Where the tool may have run, it should not run again.
    """
    wait = probe.options.error_wait
    result = await probe.call(case, wait=wait, any_data=True)
    runs = probe.runs(case, [result])
    early = result.seconds < wait * _EARLY
    gives_reason = _gives_reason(case, result)
    if result.status == 200:
        verdict = Verdict.GOOD
    elif not early:
        verdict = Verdict.BAD
    else:
        perfect = gives_reason and (runs <= 1 or case in _REPEATED) and _reports_delivery_right(case, result)
        verdict = Verdict.GOOD if perfect else Verdict.LIMITED
    outcome = result.describe()
    if result.problem and early:
        outcome += " with the reason" if gives_reason else " without the reason"
        if case == "refused-connection":
            outcome += (
                ", safe to repeat"
                if _reports_delivery_right(case, result)
                else ", said to be perhaps delivered"
            )
    seen_runs = None if case == "refused-connection" else runs
    return Row(case, verdict, outcome, result.seconds, seen_runs, probe.letter_text([result]) or "none")


# The tool gives a text of its own in these cases; in the others the Broker knows the reason.
_WITH_TEXT = frozenset({"refusal", "failure"})
# A 500 is repeated as the Trigger's delivery says; nothing else may run again.
_REPEATED = frozenset({"failure"})


def _gives_reason(case: str, result: CallResult) -> bool:
    return REASON in result.text if case in _WITH_TEXT else bool(result.problem.get("reason_text"))


def _reports_delivery_right(case: str, result: CallResult) -> bool:
    """Return True if the error does not call an event delivered that cannot have been."""
    return case != "refused-connection" or result.problem.get("delivered") is False


async def try_reply(probe: Probe, case: str) -> Row:
    """Call a tool that was not written for Beckon's tokens."""
    result = await probe.call(case, wait=probe.options.silence, any_data=_HINTS.get(case) == _ANY)
    verdict = Verdict.GOOD if result.right else Verdict.LIMITED
    return Row(case, verdict, result.describe(), result.seconds, probe.runs(case, [result]))


def describe_letters(rows: Iterable[Row]) -> Row:
    """Summarize the dead letters of the failing cases in one row."""
    by_case = {row.case: row.dead_letter for row in rows if row.dead_letter}
    letters = {case: text for case, text in by_case.items() if text != "none"}
    code = any("code" in text for text in letters.values())
    reason = any("the tool's text" in text for text in letters.values())
    begun = "not begun" in letters.get("refused-connection", "")
    parts = [
        "the code" if code else "no code",
        "the tool's text" if reason else "no text of the tool",
        "whether the tool can have begun" if begun else "not whether the tool can have begun",
    ]
    missing = [TITLES[case] for case, text in by_case.items() if text == "none"]
    if missing:
        parts.append(f"none came for: {', '.join(missing)}")
    verdict = Verdict.GOOD if code and reason and begun and not missing else Verdict.LIMITED
    return Row("dead-letter", verdict, ", ".join(parts))


def _judge_answers(probe: Probe, case: str, results: list[CallResult], outcome: str) -> Row:
    """Return the row of calls that must all be answered, each after one run."""
    runs = probe.runs(case, results)
    right = all(result.right for result in results)
    verdict = Verdict.BAD if not right else Verdict.LIMITED if runs > 1 else Verdict.GOOD
    longest = max(result.seconds for result in results)
    return Row(case, verdict, outcome, longest, runs, probe.letter_text(results))


def describe_results(results: list[CallResult]) -> str:
    """Return how many calls were answered, and how the others ended."""
    right = sum(result.right for result in results)
    others = Counter(result.describe() for result in results if not result.right)
    parts = [f"{right} of {len(results)} answered"]
    parts += [f"{count} × {kind}" for kind, count in others.most_common()]
    return ", ".join(parts)
