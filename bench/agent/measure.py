"""The measurements: each sends questions, checks the answers, and reads CPU and memory from /proc."""

import asyncio
import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from bench.agent.contestants import Contestant, Field, Wire
from bench.agent.exchange import Answered, Connection, connect
from bench.agent.model import FIRST_WORD, text_of
from bench.agent.tool import celsius_of

RUN_WORDS = 32
_Each = TypeVar("_Each")
_MODEL = Wire(
    "/v1/chat/completions",
    lambda question, stream: {"messages": [{"role": "user", "content": question}], "stream": stream},
    str,
    lambda event: "".join(choice["delta"].get("content") or "" for choice in event["choices"]),
)


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured: rounds, runs in each, and how many of them at once."""

    rounds: int
    runs: int
    at_once: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What a run of two turns took: CPU of the agent's process and of the whole path, and the time; in ms."""

    own: float
    path: float
    p50: float


@dataclass(slots=True)
class Runs:
    """What several rounds of the same found; `wrong` counts the answers that were not right."""

    costs: list[Cost] = field(default_factory=list)
    wrong: int = 0

    @property
    def median(self) -> Cost:
        """The medians."""
        return Cost(
            statistics.median(cost.own for cost in self.costs),
            statistics.median(cost.path for cost in self.costs),
            statistics.median(cost.p50 for cost in self.costs),
        )


@dataclass(frozen=True, slots=True)
class Streams:
    """What became of many streams at once; `seconds` from the first word of any to the end of all."""

    open_at_once: int
    sent: int
    arrived: int
    whole: int
    seconds: float
    cpu_seconds: float
    rss: float


async def runs(
    contestant: Contestant, total: int, at_once: int, into: Runs, *, stream: bool = False, settle: float = 0
) -> None:
    """Make runs of two turns with a tool call each, so many at a time.

    What the processes do within `settle` seconds after the last one is counted, too.
    """
    questions = iter(range(total))
    taken: list[float] = []
    connections = [await connect(contestant.port, FIRST_WORD) for _ in range(at_once)]

    async def ask(connection: Connection) -> None:
        for number in questions:
            city = number % 1000
            question = f"What is the weather? [bench city={city} words={RUN_WORDS}]"
            answered = await connection.exchange(contestant.wire.request(question, stream=stream))
            right = text_of(RUN_WORDS, celsius_of(city))
            into.wrong += _text(contestant.wire, answered, stream=stream) != right
            taken.append(answered.seconds)

    own, path = contestant.own.cpu_seconds(), _cpu(contestant)
    await asyncio.gather(*(ask(connection) for connection in connections))
    await asyncio.sleep(settle)
    own, path = contestant.own.cpu_seconds() - own, _cpu(contestant) - path
    for connection in connections:
        connection.close()
    into.costs.append(Cost(1000 * own / total, 1000 * path / total, 1000 * statistics.median(taken)))


async def first_words(port: int, wire: Wire, total: int) -> list[float]:
    """Return the milliseconds to the first word of so many streamed answers without a tool call, in turn."""
    connection = await connect(port, FIRST_WORD)
    message = wire.request("Say something. [bench words=8]", stream=True)
    found = []
    for _ in range(total):
        answered = await connection.exchange(message)
        if _text(wire, answered, stream=True) != text_of(8):
            raise RuntimeError(f"a wrong answer ({answered.status}): {answered.body[:500]!r}")
        found.append(1000 * answered.first)
    connection.close()
    return found


async def direct(field_: Field, total: int) -> list[float]:
    """Return the same for the model itself."""
    return await first_words(field_.model_port, _MODEL, total)


async def streams(contestant: Contestant, field_: Field, total: int, words: int, every: int) -> Streams:
    """Let so many streams of `words` chunks, `every` milliseconds one, be open at once on one core."""
    connections = [await connect(contestant.port, FIRST_WORD) for _ in range(total)]
    question = f"Say something. [bench words={words} every={every} batch={total}]"
    message = contestant.wire.request(question, stream=True)
    await _peak(field_)
    with _one_core(contestant, field_):
        cpu = contestant.own.cpu_seconds()
        answers = await asyncio.gather(*(connection.exchange(message) for connection in connections))
        cpu = contestant.own.cpu_seconds() - cpu
        rss = contestant.own.rss_megabytes()
    for connection in connections:
        connection.close()
    right = text_of(words)
    texts = [_text(contestant.wire, answered, stream=True) for answered in answers]
    firsts = [answered.first for answered in answers if answered.first]
    ends = max(answered.seconds for answered in answers)
    return Streams(
        open_at_once=await _peak(field_),
        sent=total * words,
        arrived=sum(_arrived(text, right) for text in texts),
        whole=sum(text == right for text in texts),
        seconds=ends - min(firsts) if firsts else 0.0,
        cpu_seconds=cpu,
        rss=rss,
    )


def rotate(those: Sequence[_Each], number: int) -> list[_Each]:
    """Return them in an order of the round's own: none is always first after a pause."""
    first = number % len(those)
    return [*those[first:], *those[:first]]


def compute_ratios(base: Runs, these: Runs) -> tuple[float, float]:
    """Return the medians of the rounds' ratios, own and path."""
    pairs = list(zip(these.costs, base.costs, strict=True))
    return (
        statistics.median(cost.own / other.own for cost, other in pairs if other.own),
        statistics.median(cost.path / other.path for cost, other in pairs if other.path),
    )


def quantile(found: Sequence[float], part: float) -> float:
    """Return a quantile."""
    ordered = sorted(found)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def _cpu(contestant: Contestant) -> float:
    return sum(child.cpu_seconds() for child in contestant.path)


def _text(wire: Wire, answered: Answered, *, stream: bool) -> str:
    """Return the text of an answer; nothing for one that failed."""
    if answered.status != 200:
        return ""
    try:
        return wire.text(answered.body, stream=stream)
    except (ValueError, KeyError, TypeError, IndexError):
        return ""


def _arrived(text: str, right: str) -> int:
    """Count the words that came, each in its place."""
    return sum(came == sent for came, sent in zip(text.split(), right.split(), strict=False))


async def _peak(field_: Field) -> int:
    """Return the most answers of the model in progress at once since the last call of this function."""
    connection = await connect(field_.model_port, FIRST_WORD)
    answered = await connection.exchange(b"GET /peak HTTP/1.1\r\nhost: bench\r\n\r\n")
    connection.close()
    return int(answered.body)


@contextmanager
def _one_core(contestant: Contestant, field_: Field) -> Iterator[None]:
    """Give the agent one core, and the others to all else, where there are several."""
    cores = os.sched_getaffinity(0)
    its = {max(cores)}
    others = [field_.model, *contestant.path[1:]]
    contestant.own.pin(its)
    for child in others:
        child.pin(cores - its or cores)
    os.sched_setaffinity(0, cores - its or cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        for child in (contestant.own, *others):
            child.pin(cores)
