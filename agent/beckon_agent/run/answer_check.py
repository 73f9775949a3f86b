"""The check of an answer against the request, with one more request to the model.

The text of an answer that may be replaced is held back until the answer is known to be good.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from beckon_agent.core.model_types import Message, Turn, Usage, sum_usages
from beckon_agent.core.run_events import StreamItem, TextDelta
from beckon_agent.model.errors import InvalidOutput, ModelError, ToolChoiceNotHonoured
from beckon_agent.model.instructions import choice_instruction, forced_name, is_strict, output_schema
from beckon_contract.jsontext import dumps
from beckon_contract.schema.arguments import Validator
from beckon_contract.schema.decoding import UndecodableError, decode

logger = logging.getLogger(__name__)

AskModel = Callable[[Sequence[Message]], AsyncGenerator[StreamItem]]
"""Requests the model's answer to these messages."""

_ATTEMPTS = 2
_WHOLE = (None, "stop", "tool_calls", "function_call")
"""The finish reasons of an answer that can be judged: others cut it off, or withhold it. Nor is a refusal."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """An answer that does not do: the instruction for another one, and the error if there is none."""

    instruction: str
    error: ModelError


class Demand(Protocol):
    """What a request wants of one answer."""

    @property
    def holds(self) -> bool:
        """True if the text is held back until the answer is judged."""
        ...

    def judge(self, turn: Turn, *, shown: bool) -> Turn | Unfit:
        """Return the answer to show, if this one does. Of a `shown` answer nothing can be changed."""
        ...


@dataclass(frozen=True, slots=True)
class ForcedCall:
    """The demand for a call. `names` are the tools that count."""

    choice: object
    names: frozenset[str]

    @property
    def holds(self) -> bool:
        """True: only the end of an answer shows whether it has a call."""
        return True

    def judge(self, turn: Turn, *, shown: bool) -> Turn | Unfit:
        """Return the answer if it has such a call."""
        if any(call.name in self.names for call in turn.calls):
            return turn
        name = forced_name(self.choice)
        message = (
            f"tool_choice: the agent's model made no call{f' of {name!r}' if name else ''}, also at a "
            "second request; send 'auto', use a model that can be forced, or set the agent's dialect to "
            "prompted if the model's server drops tools"
        )
        return Unfit(choice_instruction(self.choice), ToolChoiceNotHonoured(message))


class JsonOutput:
    """The demand for JSON of a schema, or for any JSON object.

    `constrained` returns True while the server is known to hold its answers to the format. `learn` is called
    with what an answer shows of that.
    """

    def __init__(
        self, response_format: object, constrained: Callable[[], bool], learn: Callable[[bool], None]
    ) -> None:
        """Raise `ValueError` for an invalid schema."""
        self._validator = Validator(output_schema(response_format))
        self._strict = is_strict(response_format)
        self._constrained = constrained
        self._learn = learn

    @property
    def holds(self) -> bool:
        """True unless the server is known to hold its answers to such a format."""
        return not (self._strict and self._constrained())

    def judge(self, turn: Turn, *, shown: bool) -> Turn | Unfit:
        """Return the answer if it is valid, or a call; JSON comes out of its fence."""
        if turn.calls:
            return turn
        try:
            value, repairs = decode(turn.text)
        except UndecodableError:
            problems: Sequence[str] = ("it is not JSON",)
        else:
            fenced = repairs == ["fence"] and not shown
            alone = not repairs or fenced
            problems = self._validator.problems(value) if alone else ("there is more than JSON in it",)
            if not problems:
                self._learn(not fenced)
                return _without_fence(turn, dumps(value).decode()) if fenced else turn
        self._learn(False)
        listed = "; ".join(problems)
        message = (
            f"the answer of the agent's model does not fit the requested format ({listed}); "
            "simplify the schema, or use a model that keeps to one"
        )
        return Unfit(
            f"Your answer is not valid: {listed}. Answer with valid JSON only.", InvalidOutput(message)
        )


def _without_fence(turn: Turn, text: str) -> Turn:
    """Return a turn with another text, which is not that of its tokens."""
    return replace(turn, text=text, details=replace(turn.details, logprobs=()))


async def stream_checked(
    ask: AskModel, messages: Sequence[Message], demand: Demand
) -> AsyncGenerator[StreamItem]:
    """Yield the pieces of an answer that does what a request wants.

    If the first one does not, and none of its text is shown, the model gets one more request. Raises
    `ModelError`.
    """
    spent: Usage | None = None
    reasoning = ""
    for attempt in range(_ATTEMPTS):
        deltas: list[TextDelta] = []
        shown, turn = False, Turn()
        async with aclosing(ask(messages)) as items:
            async for item in items:
                match item:
                    case Turn():
                        turn = item
                    case TextDelta() if not shown and demand.holds:
                        deltas.append(item)
                    case _:
                        shown = shown or isinstance(item, TextDelta)
                        yield item
        spent, reasoning = sum_usages((spent, turn.usage)), reasoning + turn.reasoning
        is_complete = turn.finish_reason in _WHOLE and not turn.details.refusal
        fit = demand.judge(turn, shown=shown) if is_complete else turn
        if isinstance(fit, Turn):
            for piece in deltas if fit.text == turn.text else [TextDelta(fit.text)]:
                yield piece
            yield replace(fit, usage=spent, reasoning=reasoning)
            return
        if shown or attempt + 1 == _ATTEMPTS:
            raise fit.error
        logger.info("the model's answer does not do; sending one more request: %s", fit.instruction)
        answer: list[Message] = [{"role": "assistant", "content": turn.text}] if turn.text else []
        messages = [*messages, *answer, {"role": "user", "content": fit.instruction}]
