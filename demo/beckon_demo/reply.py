"""From a conversation to the demo model's reply: calls, or an answer."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from beckon_demo.answer import answer, no_match
from beckon_demo.choose import Choice, best, choose
from beckon_demo.conversation import Conversation
from beckon_demo.fill import fill
from beckon_demo.tools import Tool
from beckon_demo.words import with_operators


@dataclass(frozen=True, slots=True)
class Call:
    """A call to make; `id` is nine letters and digits.

    The same request gives the same id.
    """

    id: str
    name: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class Reply:
    """The text of a reply, and the calls to send natively.

    Calls written as markup are part of the text.
    """

    text: str
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Rules:
    """The calls allowed by a request.

    With `calls` false there are none. `required` demands a call of any tool, `tool` one of the named tool,
    and `parallel` allows several at once.
    """

    calls: bool = True
    required: bool = False
    tool: str | None = None
    parallel: bool = True


def reply(conversation: Conversation, rules: Rules, seed: str) -> Reply:
    """Decide on the reply; `seed` determines the ids of its calls.

    The same seed gives the same ids.
    """
    if conversation.results:
        return Reply(answer(conversation.results))
    calls = _calls(conversation, rules, seed) if rules.calls else []
    if not calls:
        return Reply(no_match(conversation.tools))
    if conversation.style == "native":
        return Reply("", tuple(calls))
    return Reply(_prompted(calls) if conversation.style == "prompted" else _chatglm3(calls))


def _calls(conversation: Conversation, rules: Rules, seed: str) -> list[Call]:
    question = with_operators(conversation.question)
    calls: list[Call] = []
    for choice in _choices(question, conversation.tools, rules):
        arguments = fill(choice.tool, choice.text, question)
        if all((choice.tool.name, arguments) != (call.name, call.arguments) for call in calls):
            digest = hashlib.sha256(f"{seed}/{len(calls)}".encode()).hexdigest()
            calls.append(Call(digest[:9], choice.tool.name, arguments))
    return calls if rules.parallel else calls[:1]


def _choices(question: str, tools: Sequence[Tool], rules: Rules) -> list[Choice]:
    if rules.tool is not None:
        return [Choice(tool, question) for tool in tools if tool.name == rules.tool]
    choices = choose(question, tools)
    if rules.required and not choices and tools:
        return [Choice(best(question, tools) or tools[0], question)]
    return choices


def _prompted(calls: Sequence[Call]) -> str:
    objects = ({"functionCall": {"name": call.name, "args": call.arguments}} for call in calls)
    return "\n".join(json.dumps(one, ensure_ascii=False) for one in objects)


def _chatglm3(calls: Sequence[Call]) -> str:
    fenced = (f"{call.name}\n```python\ntool_call({_keywords(call)})\n```" for call in calls)
    return "\n<|assistant|>".join(fenced)


def _keywords(call: Call) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
