"""Measure the choice of tools: `python -m bench.tools`, tables on standard output.

Recall at k is the share of the tools labelled for a question that are among the first k of the ranking, as
the mean over questions. `labelled` says what the labels are worth; the settings of the ranking were chosen
by looking at the development half alone.

The ranking is also measured without the lift that tools of one service give each other. And the whole
choice is measured: of the labelled tools, how many a first request declares under some limits, where one
declaration is `find_tools` and a quarter of the room is left for what comes later.

Time and memory are those of 5,000 tools: copies of the labelled ones, under names of their own.
"""

import argparse
import asyncio
import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from beckon_agent.tools.bm25 import Index
from beckon_agent.tools.query import query_of
from beckon_agent.tools.select import FittingTools, Situation
from beckon_contract.resources.tools import Tool
from bench.cluster.table import show
from bench.tools.labelled import Half, Labelled, Question, labelled

_DEPTHS = (1, 5, 10, 20, 64)
_LIMITS = (21, 32, 64, 128)
_AIM = 0.95
_AIMED_AT = 20
_HALVES: tuple[Half, ...] = ("development", "held out")
_MANY = 5_000
_USUAL_LIMIT = 64
_TURNS = 9
_TALKS = 100

Ranking = Callable[[Question], Sequence[str]]


def main() -> int:
    """Print the tables; return 1 where the held-out half misses the aim."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.tools", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--quick", action="store_true", help="only the recall of the held-out half")
    quick = parser.parse_args().quick
    try:
        data = labelled()
    except FileNotFoundError as error:
        sys.stderr.write(f"the labelled data is not here: {error}\n")
        return 2
    held_out = _of_half(data, "held out")
    print(f"{len(data.tools)} tools, {len(data.questions)} questions, {len(held_out)} of them held out")
    index = Index(data.tools)
    if not quick:
        alone = Index(data.tools, share=0.0)
        for half in _HALVES:
            _show_recall(f"Recall at k, {half} half", _of_half(data, half), _ranking(index))
            _show_recall(f"The same by BM25 alone, {half} half", _of_half(data, half), _ranking(alone))
        _show_declared(data)
        _show_cost(data)
    reached = _recall(held_out, _ranking(index))[_DEPTHS.index(_AIMED_AT)]
    print(f"recall at {_AIMED_AT}, held out: {reached:.3f}; the aim is {_AIM}")
    return 0 if reached >= _AIM else 1


def _of_half(data: Labelled, half: Half) -> list[Question]:
    return [question for question in data.questions if question.half == half]


def _ranking(index: Index) -> Ranking:
    return lambda question: index.find_best(query_of(_messages(question)), max(_DEPTHS))


def _messages(question: Question) -> list[dict[str, object]]:
    return [{"role": "user", "content": question.text}]


def _show_recall(title: str, questions: Sequence[Question], ranking: Ranking) -> None:
    sources = sorted({question.source for question in questions})
    groups = {"all": questions} | {
        source: [question for question in questions if question.source == source] for source in sources
    }
    rows = [
        [name, str(len(group)), *(f"{share:.3f}" for share in _recall(group, ranking))]
        for name, group in groups.items()
    ]
    show(title, ["source", "questions", *(f"@{depth}" for depth in _DEPTHS)], rows)


def _recall(questions: Sequence[Question], ranking: Ranking) -> list[float]:
    ranked = [(question, ranking(question)) for question in questions]
    return [
        statistics.fmean(_share(question, names[:depth]) for question, names in ranked) for depth in _DEPTHS
    ]


def _share(question: Question, names: Iterable[str]) -> float:
    return len(question.expected.intersection(names)) / len(question.expected)


def _show_declared(data: Labelled) -> None:
    rows = []
    for limit in _LIMITS:
        shares = asyncio.run(_declared(data, limit))
        rows.append([str(limit), *(f"{shares[half]:.3f}" for half in _HALVES)])
    show("Labelled tools that the first request declares", ["limit", *_HALVES], rows)


async def _declared(data: Labelled, limit: int) -> Mapping[Half, float]:
    chooser = FittingTools()
    shares: dict[Half, list[float]] = {half: [] for half in _HALVES}
    for question in data.questions:
        selection = await chooser.choose_tools(Situation(data.tools, _messages(question), limit))
        shares[question.half].append(_share(question, selection.names))
    return {half: statistics.fmean(found) for half, found in shares.items()}


def _show_cost(data: Labelled) -> None:
    tools = _many(data.tools)
    gc.collect()
    before, begun = _resident(), time.process_time()
    index = Index(tools)
    built, grown = time.process_time() - begun, _resident() - before
    queries = [query_of(_messages(question)) for question in data.questions]
    times = sorted(_timed(index, query) for query in queries)
    rows = [
        ["index built, CPU seconds", f"{built:.3f}"],
        ["resident memory of the index, MB (peak)", f"{grown:.1f}"],
        ["query, CPU ms, median", f"{statistics.median(times) * 1000:.2f}"],
        ["query, CPU ms, 99 of 100", f"{times[len(times) * 99 // 100] * 1000:.2f}"],
    ]
    rows += asyncio.run(_cost_of_choices(tools, data.questions))
    show(f"Cost with {len(tools)} tools", ["what", "figure"], rows)


async def _cost_of_choices(tools: Mapping[str, Tool], questions: Sequence[Question]) -> list[list[str]]:
    """Return what whole choices take: of a first question, and of a talk that a client brings along."""
    chooser = FittingTools()
    await chooser.choose_tools(Situation(tools, _messages(questions[0]), _USUAL_LIMIT))
    talks = [_talk(questions[start:]) for start in range(0, _TALKS * _TURNS, _TURNS)]
    kinds = {
        "one question": [talk[:1] for talk in talks],
        f"{_TURNS - 1} questions that are new here": [talk[:-2] for talk in talks],
        "the same and one more": talks,
    }
    rows = []
    for kind, several in kinds.items():
        times = []
        for messages in several:
            begun = time.process_time()
            await chooser.choose_tools(Situation(tools, messages, _USUAL_LIMIT))
            times.append(time.process_time() - begun)
        figure = f"{statistics.median(times) * 1000:.1f}"
        rows.append([f"choice of {_USUAL_LIMIT}, {kind}, CPU ms, median", figure])
    return rows


def _talk(questions: Sequence[Question]) -> list[dict[str, object]]:
    """Return a conversation of some questions, the last one without its answer."""
    messages: list[dict[str, object]] = []
    for question in questions[:_TURNS]:
        messages += [*_messages(question), {"role": "assistant", "content": "Done."}]
    return messages[:-1]


def _many(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """Return copies of the tools under names of their own, each copy a service of its own."""
    copies: dict[str, Tool] = {}
    while True:
        number = len(copies)
        for tool in tools.values():
            name = f"{tool.name}_{number}"
            copies[name] = replace(tool, name=name, type=f"copy{number}.{tool.type}")
            if len(copies) == _MANY:
                return copies


def _timed(index: Index, query: Mapping[str, float]) -> float:
    begun = time.process_time()
    index.find_best(query, 64)
    return time.process_time() - begun


def _resident() -> float:
    """Return the most memory that this process had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    sys.exit(main())
