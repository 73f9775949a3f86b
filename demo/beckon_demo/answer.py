"""The texts of the demo model: readable sentences quoting the results.

Each is marked as the demo model's own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from beckon_demo.conversation import Result
from beckon_demo.tools import Tool

LABEL: Final = "[demo model] "
"""Stands before every answer: this is no language model, and it never pretends to be one."""

_MAX_VALUE: Final = 300
_MAX_FIELDS: Final = 30
_MAX_TOOLS: Final = 20


def answer(results: Sequence[Result]) -> str:
    """Quote the results of the tools, one a line."""
    return LABEL + "\n".join(_quote(result) for result in results)


def no_match(tools: Sequence[Tool]) -> str:
    """Explain this model, its tools, and how to request one."""
    if not tools:
        return (
            f"{LABEL}I am a stand-in and not a language model, and this request brought me no tools to call."
        )
    listed = "\n".join(f"- {tool.name}: {_short(tool.description)}" for tool in tools[:_MAX_TOOLS])
    more = f"\n- and {len(tools) - _MAX_TOOLS} more" if len(tools) > _MAX_TOOLS else ""
    return (
        f"{LABEL}I am a stand-in and not a language model: I choose a tool by the words of your question, "
        f"and none of them fits one. Ask in the words of these tools:\n{listed}{more}"
    )


def _quote(result: Result) -> str:
    value = _parsed(result.content)
    if isinstance(value, Mapping) and isinstance(value.get("error"), Mapping | str):
        return f"{result.name} failed: {_problem(value['error'])}"
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if isinstance(value, Mapping):
        return f"{result.name}: {'; '.join(_fields(value))}"
    return f"{result.name}: {_written(value)}"


def _problem(error: object) -> str:
    if isinstance(error, Mapping):
        return ": ".join(_written(error[key]) for key in ("reason", "message") if error.get(key))
    return _written(error)


def _fields(value: Mapping[str, object]) -> Iterator[str]:
    for count, (name, one) in enumerate(value.items()):
        if count == _MAX_FIELDS:
            yield "…"
            return
        yield f"{name} {_written(one)}"


def _written(value: object) -> str:
    return _short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE // 2]}… ({len(text)} characters)"


def _parsed(content: str) -> object:
    try:
        value: object = json.loads(content)
    except (ValueError, RecursionError):
        return content
    return value
