"""From a conversation to the demo model's reply: calls, or an answer that quotes results."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from beckon_contract.names import RESERVED
from beckon_demo.arguments import ARITHMETIC, DATE, find_arguments, has_value_for
from beckon_demo.conversation import Conversation, OfferedTool, Result, read_parameters, words

LABEL: Final = "[demo model] "
"""Before every answer in words: this is no language model, and it never pretends to be one."""

_MAX_VALUE: Final = 300
_MAX_FIELDS: Final = 30
_MAX_TOOLS: Final = 20

_PARTS = re.compile(r"\s+and\s+(?:also\s+|then\s+)?|;\s*|(?<=[?!])\s+|,\s*then\s+", re.IGNORECASE)
_ENOUGH: Final = 2.0
"""The score from which on a tool is chosen."""

_STEM: Final = 5
"""Letters in common from which on two words count as forms of one (calculate, calculator)."""

_SQL = re.compile(r"\bSELECT\s.+\sFROM\s", re.DOTALL)
_HINTS: Final = (
    (_SQL, "sql query database"),
    (ARITHMETIC, "calculate arithmetic expression math"),
    (re.compile(r"\b[A-Z][a-z]+/[A-Z][A-Za-z_]+\b|\bUTC\b|\bo'clock\b"), "time timezone"),
    (re.compile(r"(?i)\b(?:rain|snow|sunny|umbrella|degrees|forecast|hot|cold|temperature)\w*\b"), "weather"),
    (re.compile(r"(?i)\b(?:price|stock|shares?|quote|ticker)\b"), "stock quote price symbol"),
    (re.compile(r"(?i)\b(?:say|speak|pronounce|read aloud|read out)\b"), "speech speak voice audio"),
)
"""Patterns of questions, with words that descriptions of fitting tools use."""

_SPELLED: Final = (
    (r"\bsquare root of\s+(\d+(?:\.\d+)?)", r"sqrt(\1)"),
    (r"(?<=\d)\s+(?:times|multiplied by)\s+(?=\d)", " * "),
    (r"(?<=\d)\s+divided by\s+(?=\d)", " / "),
    (r"(?<=\d)\s+plus\s+(?=\d)", " + "),
    (r"(?<=\d)\s+minus\s+(?=\d)", " - "),
    (r"(?<=\d)\s+percent\s+of\s+(?=\d)", "% of "),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make; `id` is nine letters and digits, the same for the same request."""

    id: str
    name: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply, which includes calls in markup, and the calls to send natively."""

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """The calls allowed by a request.

    With `calls` false there are none. `required` demands one, `allowed` limits them to the named tools, and
    `parallel` allows several at once.
    """

    calls: bool = True
    required: bool = False
    allowed: frozenset[str] | None = None
    parallel: bool = True


def reply(conversation: Conversation, rules: Rules, seed: str) -> Reply:
    """Decide on the reply; `seed` determines the ids of its calls."""
    if conversation.results and not rules.required:
        return Reply(LABEL + "\n".join(_quote(result) for result in conversation.results))
    calls = _calls(conversation, rules, seed) if rules.calls else []
    if not calls:
        return Reply(LABEL + _explain(conversation.tools))
    if conversation.style == "native":
        return Reply("", tuple(calls))
    return Reply(_to_prompted(calls) if conversation.style == "prompted" else _to_chatglm3(calls))


def to_json_answer(answer: Reply, conversation: Conversation, schema: Mapping[str, object]) -> Reply:
    """Return an answer as a JSON object of a schema, with values from the question and the results."""
    if answer.calls:
        return answer
    text = "\n".join([conversation.question, *(result.content for result in conversation.results)])
    properties = read_parameters(schema)
    members = find_arguments(OfferedTool("answer", "", properties), text, conversation.question)
    return Reply(json.dumps(members if properties else {"answer": answer.text}, ensure_ascii=False))


def _calls(conversation: Conversation, rules: Rules, seed: str) -> list[Call]:
    question = conversation.question
    for pattern, operators in _SPELLED:
        question = re.sub(pattern, operators, question, flags=re.IGNORECASE)
    calls: list[Call] = []
    answered = {result.name for result in conversation.results}
    for tool, text in _apply_rules(question, conversation.tools, rules, answered):
        arguments = find_arguments(tool, text, question)
        if all((tool.name, arguments) != (call.name, call.arguments) for call in calls):
            digest = hashlib.sha256(f"{seed}/{len(calls)}".encode()).hexdigest()
            calls.append(Call(digest[:9], tool.name, arguments))
    return calls if rules.parallel else calls[:1]


def _apply_rules(
    question: str, tools: Sequence[OfferedTool], rules: Rules, answered: Collection[str]
) -> Sequence[tuple[OfferedTool, str]]:
    """Return the chosen tools. A required call prefers a tool without a result, such as a final answer's."""
    allowed = [tool for tool in tools if rules.allowed is None or tool.name in rules.allowed]
    allowed = [tool for tool in allowed if tool.name not in answered] or allowed
    choices = [] if rules.required and len(allowed) == 1 else _choose(question, allowed)
    if rules.required and not choices and (best := _best_tool(question, allowed, enough=0.0)):
        return [(best, question)]
    return choices


def _choose(question: str, tools: Sequence[OfferedTool]) -> list[tuple[OfferedTool, str]]:
    """Return the tools for the parts of a question, each with its part; a query in SQL is one part."""
    choices: list[tuple[OfferedTool, str]] = []
    parts = [question] if _SQL.search(question) else _PARTS.split(question)
    for part in filter(None, map(str.strip, parts)):
        tool = _best_tool(part, tools)
        if tool is not None:
            choices.append((tool, part))
        elif choices and has_value_for(choices[-1][0], part):  # "the weather in Paris and Rome"
            choices.append((choices[-1][0], part))
        elif choices:
            choices[-1] = (choices[-1][0], f"{choices[-1][1]} and {part}")
    best = None if choices else _best_tool(question, tools)
    return [(best, question)] if best else choices


def _best_tool(text: str, tools: Sequence[OfferedTool], enough: float = _ENOUGH) -> OfferedTool | None:
    """Return the best fitting tool, or None if no tool fits well enough.

    Of equals it is the last: a client's own functions stand behind the agent's tools.
    The agent's own tools are never chosen: they are for models that understand what they lack.
    """
    plain = DATE.sub(" ", text)
    hints = " ".join(hint for pattern, hint in _HINTS if pattern.search(plain))
    wanted = {word for word in words(f"{text} {hints}") if not word.isdigit()}
    scored = [(_score(wanted, tool), tool) for tool in tools if tool.name not in RESERVED]
    score, tool = max(reversed(scored), key=lambda pair: pair[0], default=(0.0, None))
    return tool if score >= enough else None


def _score(wanted: set[str], tool: OfferedTool) -> float:
    """Add up the words in common, each by the best place in which the tool has it."""
    places: tuple[tuple[float, list[str]], ...] = (
        (3.0, words(tool.name)),
        (2.0, [word for one in tool.parameters for word in words(one.name)]),
        (1.0, [*words(tool.description), *(word for one in tool.parameters for word in one.hints)]),
    )
    return sum(
        next((weight for weight, here in places if any(_is_form(word, one) for one in here)), 0.0)
        for word in wanted
    )


def _is_form(first: str, second: str) -> bool:
    shorter = min(len(first), len(second))
    length = max(_STEM, shorter - 3)
    return first.rstrip("s") == second.rstrip("s") or (shorter >= _STEM and first[:length] == second[:length])


def _to_prompted(calls: Sequence[Call]) -> str:
    objects = ({"functionCall": {"name": call.name, "args": call.arguments}} for call in calls)
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in objects)


def _to_chatglm3(calls: Sequence[Call]) -> str:
    keywords = [", ".join(f"{name}={value!r}" for name, value in call.arguments.items()) for call in calls]
    fenced = (
        f"{call.name}\n```python\ntool_call({text})\n```" for call, text in zip(calls, keywords, strict=True)
    )
    return "\n<|assistant|>".join(fenced)


def _explain(tools: Sequence[OfferedTool]) -> str:
    """Explain this model, its tools, and how to request one."""
    if not tools:
        return "I am a stand-in and not a language model, and this request brought me no tools to call."
    listed = "\n".join(f"- {tool.name}: {_shorten(tool.description)}" for tool in tools[:_MAX_TOOLS])
    more = f"\n- and {len(tools) - _MAX_TOOLS} more" if len(tools) > _MAX_TOOLS else ""
    return (
        "I am a stand-in and not a language model: I choose a tool by the words of your question, "
        f"and none of them fits one. Ask in the words of these tools:\n{listed}{more}"
    )


def _quote(result: Result) -> str:
    """Write a result as a line: its fields, or the reason of a failure."""
    try:
        value: object = json.loads(result.content)
    except (ValueError, RecursionError):
        value = result.content
    error = value.get("error") if isinstance(value, Mapping) else None
    if isinstance(error, Mapping):
        error = ": ".join(_write(error[key]) for key in ("reason", "message") if error.get(key))
    if isinstance(error, str):
        return f"{result.name} failed: {_shorten(error)}"
    if isinstance(value, Mapping) and len(value) == 1:
        value = next(iter(value.values()))
    if not isinstance(value, Mapping):
        return f"{result.name}: {_write(value)}"
    fields = [f"{name} {_write(one)}" for name, one in [*value.items()][:_MAX_FIELDS]]
    return f"{result.name}: {'; '.join([*fields, '…'] if len(value) > _MAX_FIELDS else fields)}"


def _write(value: object) -> str:
    return _shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE // 2]}… ({len(text)} characters)"
