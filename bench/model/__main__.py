"""Measure a small real language model on the example tools: `python -m bench.model`, a table.

Fifty questions, with 1, 2, 3 and all tools offered by the ranking: the share of right tools and of right
arguments by the agent's own code, beside the same model with the same prompt and schema and nothing of the
agent between. The temperature is 0.
"""

import argparse
import asyncio
import socket
import sys
import time
from collections.abc import Sequence

from beckon_agent.model.client import ModelClient
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.tools.bm25 import Index
from beckon_cli.local.local_model import MODEL
from bench.cluster.table import show
from bench.model.asking import Call, ask_agent, ask_directly, example_tools, offer, running_model
from bench.model.questions import QUESTIONS, Question

_LIMITS = (1, 2, 3, 99)


def main() -> int:
    """Print the table; return 1 where the agent is below the model alone."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.model", description=(__doc__ or "").split("\n\n", maxsplit=1)[0]
    )
    parser.add_argument("--quick", action="store_true", help="every fifth question")
    questions = QUESTIONS[::5] if parser.parse_args().quick else QUESTIONS
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with running_model(port) as server:
        return asyncio.run(_measure(server, questions))


async def _measure(server: str, questions: Sequence[Question]) -> int:
    tools = example_tools()
    index = Index(tools)
    rows, lower = [], False
    async with ModelClient(f"{server}/v1", "", MODEL) as client:
        # The dialect that `auto` settles on here, after requests that only one of the two would make.
        model = DialectModel(client, "prompted")
        for limit in _LIMITS:
            begun = time.monotonic()
            ours: list[Call | None] = []
            direct: list[Call | None] = []
            for question in questions:
                request = offer(question, tools, index, limit)
                ours.append(await ask_agent(model, server, request))
                direct.append(await asyncio.to_thread(ask_directly, server, request))
            scores = [count_right(questions, calls) for calls in (ours, direct)]
            lower = lower or any(agent < alone for agent, alone in zip(*scores, strict=True))
            seconds = (time.monotonic() - begun) / len(questions) / 2
            shown = [f"{right} of {len(questions)}" for score in scores for right in score]
            rows.append([str(min(limit, len(tools))), *shown, f"{seconds:.1f}"])
    columns = ["tools", "right tool", "right arguments", "alone: tool", "alone: arguments", "s an answer"]
    show(f"{MODEL}, {len(questions)} questions", columns, rows)
    return 1 if lower else 0


def count_right(questions: Sequence[Question], calls: Sequence[Call | None]) -> tuple[int, int]:
    """Return the number of right tools, and that of right arguments besides."""
    right = [
        (question, call)
        for question, call in zip(questions, calls, strict=True)
        if call and call[0] == question.tool
    ]
    return len(right), sum(question.has_right_arguments(call[1]) for question, call in right)


if __name__ == "__main__":
    sys.exit(main())
