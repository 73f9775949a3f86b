"""The check of an answer against the request, with one more question to the model.

The text of an answer that may be asked for again is held back until the answer is known to be good.
"""

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from beckon_agent.core.model_types import Message, Turn, Usage
from beckon_agent.core.run_events import StreamItem
from beckon_agent.core.run_types import Options
from beckon_agent.model.client import _add_usages
from beckon_agent.model.errors import ToolChoiceNotHonoured
from beckon_agent.model.instructions import choice_instruction, forced_name, is_forced
from beckon_contract.resources.tools import Tool

logger = logging.getLogger(__name__)

_ATTEMPTS = 2

AskModel = Callable[[Sequence[Message]], AsyncGenerator[StreamItem]]
"""Asks the model for an answer to these messages."""


@dataclass(frozen=True, slots=True)
class ForcedCall:
    """The demand for a call. `names` are the tools that count."""

    choice: object
    names: frozenset[str]

    @classmethod
    def from_options(cls, options: Options, tools: Sequence[Tool]) -> "ForcedCall | None":
        """Return the demand of a request, `None` without one."""
        choice = options.extra.get("tool_choice")
        if not is_forced(choice) or not tools:
            return None
        name, allowed = forced_name(choice), options.allowed_tools
        names = [name] if name else [tool.name for tool in tools if allowed is None or tool.name in allowed]
        return cls(choice, frozenset(names))

    def is_met(self, turn: Turn) -> bool:
        """True if an answer has such a call. One that was cut off, or filtered, is not judged."""
        if turn.finish_reason not in (None, "stop", "tool_calls", "function_call"):
            return True
        return any(call.name in self.names for call in turn.calls)

    def error(self) -> ToolChoiceNotHonoured:
        """Return the error of a model without such a call."""
        name = forced_name(self.choice)
        what = f"no call of {name!r}" if name else "no tool call"
        message = (
            f"tool_choice: the agent's model made {what}, also when it was asked once more; "
            "send 'auto', or use a model that can be forced"
        )
        return ToolChoiceNotHonoured(message)


async def stream_checked(
    ask: AskModel, messages: Sequence[Message], demand: ForcedCall
) -> AsyncGenerator[StreamItem]:
    """Yield the pieces of an answer that meets a demand.

    If the first one does not, the model is asked once more. Raises `ModelError`.
    """
    spent: Usage | None = None
    for _ in range(_ATTEMPTS):
        held: list[StreamItem] = []
        turn = Turn()
        async with aclosing(ask(messages)) as items:
            async for item in items:
                held.append(item)
                if isinstance(item, Turn):
                    turn = item
        spent = _add_usages(spent, turn.usage)
        if demand.is_met(turn):
            for item in held:
                yield replace(item, usage=spent) if isinstance(item, Turn) else item
            return
        logger.info("the model made no required call; asking once more")
        said: list[Message] = [{"role": "assistant", "content": turn.text}] if turn.text else []
        messages = [*messages, *said, {"role": "user", "content": choice_instruction(demand.choice)}]
    raise demand.error()
