"""One question, by the agent's own code and straight at the model's server."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from beckon_agent.core.model_types import Turn
from beckon_agent.core.run_types import Options
from beckon_agent.dialects.constrained import CONSTRAINED, answer_format
from beckon_agent.dialects.json_text import parse_json, to_json
from beckon_agent.run.model_turn import DialectModel
from beckon_agent.tools.bm25 import Index
from beckon_agent.tools.query import query_of
from beckon_cli.local.local_model import MODEL
from beckon_contract.catalogue.builder import build_catalogue
from beckon_contract.resources.tools import Tool, declare
from beckon_contract.schema.lowering import Profile
from beckon_sources.folders import ManifestFolders
from bench.model.questions import Question

EXAMPLES = Path(__file__).resolve().parents[2] / "deploy" / "examples"
CALLER = "/beckon/agents/default/beckon"
PROMPT = "You are a helpful assistant. Use the tools where they help."
LIMIT = 128
"""Tokens of an answer; a call takes 20 to 40."""

_START_SECONDS = 300.0
_ANSWER_SECONDS = 300.0

Call = tuple[str, str]
"""The name and the arguments of a call."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A question with the tools offered for it, in this order."""

    question: Question
    tools: Sequence[Tool]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation."""
        return [{"role": "system", "content": PROMPT}, {"role": "user", "content": self.question.text}]


def example_tools() -> dict[str, Tool]:
    """Return the tools of the examples by name."""
    folder = ManifestFolders((EXAMPLES,))
    folder.refresh()
    return dict(build_catalogue(folder.resources, CALLER).tools)


def offer(question: Question, tools: dict[str, Tool], index: Index, limit: int) -> Offer:
    """Offer the best tools of the ranking, in the order of their names."""
    names = index.find_best(query_of([{"role": "user", "content": question.text}]), limit)
    return Offer(
        question, [tools[name] for name in sorted(names)] if limit < len(tools) else [*tools.values()]
    )


async def ask_agent(model: DialectModel, server: str, request: Offer) -> Call | None:
    """Return the first call of the agent's turn, `None` for an answer in text."""
    await asyncio.to_thread(_clear_cache, server)
    items = model.stream(request.messages, request.tools, Options(temperature=0, max_tokens=LIMIT))
    calls = [call for item in [item async for item in items] if isinstance(item, Turn) for call in item.calls]
    return (calls[0].name, calls[0].arguments) if calls else None


def ask_directly(server: str, request: Offer) -> Call | None:
    """Return the call in an answer to the same prompt and schema, without any of the agent's code between."""
    _clear_cache(server)
    declarations = [declare(tool, Profile.LLAMA_CPP) for tool in request.tools]
    body = {
        "model": MODEL,
        "messages": CONSTRAINED.render(request.messages, declarations).messages,
        "response_format": answer_format(declarations),
        "temperature": 0,
        "max_tokens": LIMIT,
    }
    response = httpx.post(f"{server}/v1/chat/completions", json=body, timeout=_ANSWER_SECONDS)
    response.raise_for_status()
    try:
        said: Any = parse_json(response.json()["choices"][0]["message"]["content"])
    except ValueError:  # cut off
        return None
    return (said["tool"], to_json(said["arguments"])) if "tool" in said else None


def _clear_cache(server: str) -> None:
    """Let the server forget the prompt before.

    It goes on from the part that two prompts have in common, and what is computed in other portions has
    other roundings, which change an answer of so small a model.
    """
    body = {"prompt": "-", "max_tokens": 1, "model": MODEL}
    httpx.post(f"{server}/v1/completions", json=body, timeout=_ANSWER_SECONDS).raise_for_status()


@contextlib.contextmanager
def running_model(port: int) -> Iterator[str]:
    """Serve the local model as `beckon up --model local` does; yields its URL."""
    url = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "BECKON_PORT": str(port)}
    process = subprocess.Popen([sys.executable, "-m", "beckon_cli.local.local_model"], env=environment)
    try:
        _wait_until_ready(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if httpx.get(f"{url}/health").is_success:
                return
        time.sleep(0.2)
    raise RuntimeError("the local model does not answer; is it installed? make test-model installs it")
