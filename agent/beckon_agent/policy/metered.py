"""A model whose tokens are counted."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from beckon_agent.loop import Model
from beckon_agent.model.types import Message, ReasoningDelta, StreamItem, TextDelta, Turn, Usage
from beckon_agent.policy.limits import Limits
from beckon_agent.request_id import request_id
from beckon_agent.runs import Agent, Options
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.tools import Tool

logger = logging.getLogger(__name__)

_CHARACTERS_A_TOKEN = 4  # of English text, about; only where the server does not say what it used


def metered(model: Model, limits: Limits, agent: Agent, user: str) -> Model:
    """Return a model that keeps to the agent's quotas of tokens: the same one where there are none."""
    counts = any(quota.of == "tokens" for quota in agent.terms.quotas)
    return _Metered(model, limits, agent, user) if counts else model


class _Metered:
    """Asks before each answer whether tokens are left, and counts those that it took."""

    def __init__(self, model: Model, limits: Limits, agent: Agent, user: str) -> None:
        self._model = model
        self._limits = limits
        self._agent = agent
        self._user = user

    @property
    def name(self) -> str:
        """What people know it by."""
        return self._model.name

    async def tool_limit(self) -> int:
        """Return how many declarations one request may have; raises `ModelError`."""
        return await self._model.tool_limit()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer; raise `LimitReached` before the first where no tokens are left.

        Of an answer that breaks off, what came of it is counted.
        """
        await self._limits.admit_turn(self._agent, self._user)
        usage: Usage | None = None
        said = 0
        try:
            async with aclosing(self._model.stream(messages, tools, options)) as items:
                async for item in items:
                    match item:
                        case TextDelta() | ReasoningDelta():
                            said += len(item.text)
                        case Turn():
                            usage = item.usage
                    yield item
        finally:
            await self._count(_estimate(messages, said) if usage is None else usage.total_tokens)

    async def _count(self, tokens: int) -> None:
        try:
            await self._limits.count_tokens(self._agent, self._user, tokens)
        except StoreUnavailable as error:
            logger.warning("request %s: %d tokens were not counted: %s", request_id(), tokens, error)


def _estimate(messages: Sequence[Message], said: int) -> int:
    return (len(str(messages)) + said) // _CHARACTERS_A_TOKEN
