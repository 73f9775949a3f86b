"""A model whose tokens are reserved before an answer, and counted after it."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager

from beckon_agent.model.types import Message, ReasoningDelta, StreamItem, TextDelta, Turn, Usage
from beckon_agent.policy.limits import Limits
from beckon_agent.request_id import request_id
from beckon_agent.runs import Agent, Model, Options
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.tools import Tool

logger = logging.getLogger(__name__)

_CHARACTERS_A_TOKEN = 4  # of English text, about; only where the server does not say what it used


@asynccontextmanager
async def metered(model: Model, limits: Limits, agent: Agent, user: str, run: str) -> AsyncIterator[Model]:
    """Give a run a model that keeps to the agent's quotas of tokens; the same one where there are none.

    `run` is the name under which `Limits.admit_run` has reserved. What it reserved is given back where
    the run ends without a request to the model.
    """
    if not any(quota.of == "tokens" for quota in agent.terms.quotas):
        yield model
        return
    counted = _Metered(model, limits, agent, user, run)
    try:
        yield counted
    finally:
        await counted.close()


class _Metered:
    """Reserves tokens before each answer, and counts those that it took."""

    def __init__(self, model: Model, limits: Limits, agent: Agent, user: str, run: str) -> None:
        self._model = model
        self._limits = limits
        self._agent = agent
        self._user = user
        self._run = run
        self._used = False

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
        expected = self._expected(messages, options.max_tokens)
        await self._limits.reserve_tokens(self._agent, self._user, self._run, expected)
        self._used = True
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
            await self._settle(_estimate(messages, said) if usage is None else usage.total_tokens)

    async def close(self) -> None:
        """Give back what was reserved for a request that was never made."""
        if not self._used:
            await self._settle(0)

    def _expected(self, messages: Sequence[Message], max_tokens: int | None) -> int:
        """Return what an answer will about cost: as much as usual, but the question in any case."""
        question, usual = _estimate(messages, 0), self._limits.usual_tokens(self._agent)
        return max(question + 1, usual if max_tokens is None else min(usual, question + max_tokens))

    async def _settle(self, tokens: int) -> None:
        try:
            await self._limits.settle_tokens(self._agent, self._user, self._run, tokens)
        except StoreUnavailable as error:
            logger.warning("request %s: %d tokens were not counted: %s", request_id(), tokens, error)


def _estimate(messages: Sequence[Message], said: int) -> int:
    return (len(str(messages)) + said) // _CHARACTERS_A_TOKEN
