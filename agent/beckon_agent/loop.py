"""The loop: the model is asked, its tool calls are made, their results go back, until it answers."""

import asyncio
import itertools
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from typing import Protocol, TypeVar

from beckon_agent.calls import Caller, Prepared, prepare
from beckon_agent.catalogue.source import CatalogueSource
from beckon_agent.model.types import Message, ReasoningDelta, StreamItem, TextDelta, ToolCall, Turn, Usage
from beckon_agent.results import for_model
from beckon_agent.runs import Agent, CallFinished, CallStarted, Ending, Options, RunEvent, RunFinished
from beckon_contract.failures import Reason, failure
from beckon_contract.tools import Tool

Item = TypeVar("Item")

_NOTES: dict[Ending, str] = {
    "step_limit": "the model was asked as often as one run may ask it",
    "time_limit": "the run took as long as it may take",
    "token_limit": "the run used as many tokens as it may use",
}


class Model(Protocol):
    """Anything that answers a conversation; the last item of its stream is a `Turn`."""

    @property
    def name(self) -> str:
        """What people know it by."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer."""
        ...


class _OutOfTime(Exception):
    """The run has used up its seconds."""


class Run:
    """One run of an agent over a conversation: `events()` is iterated once."""

    def __init__(
        self, agent: Agent, model: Model, catalogue: CatalogueSource, caller: Caller, options: Options
    ) -> None:
        self.id = secrets.token_hex(8)
        self._agent = agent
        self._model = model
        self._catalogue = catalogue
        self._caller = caller
        self._options = options
        self._deadline = time.monotonic() + agent.limits.seconds
        self._messages: list[Message] = []
        self._added: list[Message] = []
        self._usage: Usage | None = None
        self._ending: Ending = "stop"
        self._spoke = False

    async def events(self, messages: Sequence[Message]) -> AsyncGenerator[RunEvent]:
        """Yield what happens; the last event is `RunFinished`. Raises `ModelError` when the model fails."""
        self._messages = [{"role": "system", "content": self._agent.system_prompt}, *messages]
        try:
            async with aclosing(self._steps()) as events:
                async for event in events:
                    yield event
        except _OutOfTime:
            self._ending = "time_limit"
        if note := _NOTES.get(self._ending):
            yield TextDelta(f"{self._gap()}[stopped: {note}]")
        yield RunFinished(self._ending, self._usage, tuple(self._added))

    async def _steps(self) -> AsyncGenerator[RunEvent]:
        for step in itertools.count():
            tools = dict(self._catalogue.current.tools) if self._options.use_tools else {}
            turn = Turn()
            async with aclosing(self._ask(list(tools.values()))) as items:
                async for item in items:
                    if isinstance(item, Turn):
                        turn = item
                    else:
                        yield item
            self._count(turn.usage)
            calls = prepare(turn.calls, tools, cut_off=turn.finish_reason == "length")
            limit = self._limit_at(step)
            if limit:  # the model would never see what comes of these calls, and they may have effects
                calls = [call.refused(Reason.DENIED, f"not called: {_NOTES[limit]}") for call in calls]
            self._add(_assistant_message(turn, calls))
            async with aclosing(self._call_all(calls, step)) as finished:
                async for event in finished:
                    yield event
            if limit or not calls:
                self._ending = limit if limit and calls else _ending_of(turn)
                return

    async def _ask(self, tools: Sequence[Tool]) -> AsyncGenerator[TextDelta | ReasoningDelta | Turn]:
        """Yield one answer of the model; what it says after a call is set off from what it said before."""
        gap = self._gap()
        async with aclosing(self._model.stream(self._messages, tools, self._options)) as items:
            while (item := await self._in_time(anext(items, None))) is not None:
                if isinstance(item, TextDelta):
                    yield TextDelta(gap + item.text)
                    gap, self._spoke = "", True
                elif not isinstance(item, ToolCall):
                    yield item

    async def _in_time(self, coming: Awaitable[Item]) -> Item:
        """Wait for something, no longer than the run may take."""
        try:
            async with asyncio.timeout(self._left) as limit:
                return await coming
        except TimeoutError:
            if limit.expired():
                raise _OutOfTime from None
            raise

    @property
    def _left(self) -> float:
        """The seconds that this run has left."""
        return self._deadline - time.monotonic()

    def _gap(self) -> str:
        return "\n\n" if self._spoke else ""

    async def _call_all(
        self, calls: Sequence[Prepared], step: int
    ) -> AsyncGenerator[CallStarted | CallFinished]:
        """Make the calls of one turn side by side; their results stand in the order of the calls."""
        for call in calls:
            yield CallStarted(call.asked.id, call.asked.name, call.arguments)
        gate = asyncio.Semaphore(self._agent.limits.parallel_calls)
        tasks = [
            asyncio.create_task(self._make(call, f"{self.id}.{step}.{number}", gate))
            for number, call in enumerate(calls)
        ]
        try:
            for next_done in asyncio.as_completed(tasks):
                yield await next_done
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            self._add(self._result_message(task.result()))

    async def _make(self, call: Prepared, event_id: str, gate: asyncio.Semaphore) -> CallFinished:
        """Make a call once there is room for it; the end of the run ends it, whatever its tool does."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._left), gate:
                return await self._caller.make(
                    call, event_id=event_id, agent=self._agent, remaining=self._left
                )
        except TimeoutError:
            late = failure(Reason.TIMEOUT, f"no answer in time: {_NOTES['time_limit']}")
            return CallFinished(call.asked.id, call.asked.name, late, True, time.monotonic() - begun)

    def _result_message(self, finished: CallFinished) -> Message:
        content = for_model(finished.result, self._agent.limits.result_chars)
        return {"role": "tool", "tool_call_id": finished.id, "name": finished.name, "content": content}

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        self._added.append(message)

    def _count(self, usage: Usage | None) -> None:
        if usage is None:
            return
        before = self._usage or Usage(0, 0)
        self._usage = Usage(
            before.prompt_tokens + usage.prompt_tokens, before.completion_tokens + usage.completion_tokens
        )

    def _limit_at(self, step: int) -> Ending | None:
        """Return the limit that lets the model be asked no more after this step, if there is one."""
        limits = self._agent.limits
        if (
            limits.tokens is not None
            and self._usage is not None
            and self._usage.total_tokens >= limits.tokens
        ):
            return "token_limit"
        return "step_limit" if step + 1 >= limits.steps else None


def _assistant_message(turn: Turn, calls: Sequence[Prepared]) -> Message:
    message: Message = {"role": "assistant", "content": turn.text or (None if calls else "")}
    if turn.reasoning:
        message["reasoning_content"] = turn.reasoning
    if calls:
        message["tool_calls"] = [call.as_message_part() for call in calls]
    return message


def _ending_of(turn: Turn) -> Ending:
    """A finish reason that is not known means that the model stopped."""
    if turn.finish_reason == "length":
        return "length"
    if turn.finish_reason == "content_filter":
        return "content_filter"
    return "stop"
