"""Quotas of users, agents and tools, shared by all replicas through the store.

Every limit is a sliding window, or a number of places. Nothing begins above a limit. A request that one
limit refuses stays counted in the limits checked before: a limit may so be reached a little early, but is
never exceeded. Tokens are the exception: the cost of an answer is known only afterwards. So a run
reserves the usual tokens of a request before it is admitted, and is admitted while anything is left; it
may exceed the quota by one answer (decision 0032).
"""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

from beckon_agent.auth.authorization import limits_of
from beckon_agent.core.context import current_principal, request_id
from beckon_agent.core.model_types import Message, Turn, Usage
from beckon_agent.core.records import LimitDecision, ReservedLimit
from beckon_agent.core.run_events import CallFinished, ReasoningDelta, StreamItem, TextDelta
from beckon_agent.core.run_types import Agent, Model, Options
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.store.counters import Counters
from beckon_agent.tool_calls.caller import CallObserver, Dispatcher, ToolCaller
from beckon_agent.tool_calls.outcome import CallOutcome, failed_outcome, unknown_outcome
from beckon_agent.tool_calls.validation import PreparedCall
from beckon_contract.failures import Reason
from beckon_contract.resources.agent_terms import Holder, Measure, Rate
from beckon_contract.resources.tools import Tool

logger = logging.getLogger(__name__)

_LOOK_AGAIN = 0.5  # seconds; another replica gives a place back, and this one gets no notice
_SHORTEST_PAUSE = 0.01
_ADMISSION = 60.0  # seconds from the admission of a run to its first request to the model
_FIRST_GUESS = 500  # tokens of a request to the model, before the first one of an agent has its answer
_LEARNING = 0.2  # how much the last request changes what is reserved for the next one
_SPARE = 60.0  # seconds that a place outlives its call, so that a slow end frees no other call's

_WORDS: dict[Measure, str] = {"requests": "requests", "tokens": "tokens", "toolCalls": "tool calls"}


class LimitReached(Exception):
    """A limit has no room.

    The message names the limit; `retry_after` is in how many seconds there is room again, at least 1.
    """

    def __init__(self, message: str, retry_after: float) -> None:
        self.retry_after = max(1, math.ceil(retry_after))
        super().__init__(f"{message}; try again in {self.retry_after} s")


class Quotas:
    """The use of quotas, rates and places.

    `user` is everywhere the id of a principal. Every method may raise `StoreUnavailable`: nothing is
    admitted if the room of a limit is unknown.
    """

    def __init__(self, counters: Counters, reached: Callable[[str, str], None] | None = None) -> None:
        """`reached` is called with the names of agent and limit at each refusal."""
        self._counters = counters
        self._reached = reached
        self._usual: dict[str, float] = {}

    async def admit_call(self, agent: Agent, user: str) -> None:
        """Count a manual call as a request. Raises `LimitReached`, also if no tokens are left."""
        for per, seconds, limit in _list_quotas(agent, "tokens"):
            key = _counter_key(agent, user, "tokens", (per, seconds))
            # Nothing is taken: one more fits where the count is at most the limit less one.
            wait = await self._counters.take_amount(key, 0, limit=limit - 1, window=seconds)
            self._check_limit(agent, wait, "tokens", (per, seconds, limit))
        await self._take_amount(agent, user, "requests", 1)

    async def admit_run(self, agent: Agent, user: str, run: str) -> None:
        """Count a request and reserve its tokens.

        Raises `LimitReached`, and reserves nothing then. `run` is the `run` of `reserve_tokens` and
        `settle_tokens`.
        """
        await self._reserve_tokens(agent, user, run, self.usual_tokens(agent), first=True)
        try:
            await self._take_amount(agent, user, "requests", 1)
        except LimitReached:
            await self.settle_tokens(agent, user, run, 0)
            raise

    async def reserve_tokens(self, agent: Agent, user: str, run: str, tokens: int) -> None:
        """Reserve tokens for one request to the model.

        Raises `LimitReached` if all are used. Tokens that others have only reserved do not end an
        admitted run.
        """
        await self._reserve_tokens(agent, user, run, tokens, first=False)

    async def settle_tokens(self, agent: Agent, user: str, run: str, tokens: int) -> None:
        """Replace a reservation by the tokens used, 0 for none."""
        if tokens:
            before = self._usual.get(agent.source, tokens)
            self._usual[agent.source] = before + (tokens - before) * _LEARNING
        for per, seconds, _ in _list_quotas(agent, "tokens"):
            key = _counter_key(agent, user, "tokens", (per, seconds))
            await self._counters.settle_reservation(key, run, tokens, window=seconds)

    def usual_tokens(self, agent: Agent) -> int:
        """Return the usual tokens of a request to the agent's model.

        An average over the requests of this process.
        """
        return max(1, round(self._usual.get(agent.source, _FIRST_GUESS)))

    @asynccontextmanager
    async def reserve_call(
        self, agent: Agent, user: str, tool: Tool, call_id: str, *, patience: float
    ) -> AsyncIterator[None]:
        """Hold a place for a call while it runs.

        Before, the call is counted in its quotas and waits for the rates of its tool. Raises
        `LimitReached` if a quota is used up, or if a rate or a place has no room within `patience`
        seconds.

        `call_id` is the id of its event: a call made again after a crash keeps its place.
        """
        deadline = time.monotonic() + patience
        await self._take_amount(agent, user, "toolCalls", 1)
        limits = limits_of(tool, agent.terms.policies)
        for rate in limits.rates:
            await self._wait_for_rate(agent, tool, rate, deadline)
        if limits.concurrency is None:
            yield
            return
        key = f"places|{agent.source}|{tool.name}"
        try:
            await self._take_place(key, call_id, limits.concurrency, deadline)
        except LimitReached:
            self._report_limit(agent, "concurrency")
            raise
        try:
            yield
        finally:
            await self._give_back(key, call_id)

    async def _reserve_tokens(self, agent: Agent, user: str, run: str, tokens: int, *, first: bool) -> None:
        lease = _ADMISSION if first else agent.limits.seconds + _SPARE
        try:
            for per, seconds, limit in _list_quotas(agent, "tokens"):
                key = _counter_key(agent, user, "tokens", (per, seconds))
                reserved = ReservedLimit(limit, seconds, lease, behind_others=first)
                taken = await self._counters.reserve_amount(key, run, tokens, reserved)
                self._check_limit(agent, taken, "tokens", (per, seconds, limit))
        except LimitReached:
            await self.settle_tokens(agent, user, run, 0)
            raise

    async def _take_amount(self, agent: Agent, user: str, of: Measure, amount: int) -> None:
        for per, seconds, limit in _list_quotas(agent, of):
            key = _counter_key(agent, user, of, (per, seconds))
            taken = await self._counters.take_amount(key, amount, limit=limit, window=seconds)
            self._check_limit(agent, taken, of, (per, seconds, limit))

    async def _wait_for_rate(self, agent: Agent, tool: Tool, rate: Rate, deadline: float) -> None:
        """Wait until a rate allows a call. Raises `LimitReached` if that is not before the deadline."""
        key = f"rate|{agent.source}|{tool.name}|{rate.seconds}"
        while True:
            taken = await self._counters.take_amount(key, 1, limit=rate.calls, window=rate.seconds)
            if taken.allowed:
                return
            if time.monotonic() + taken.retry_after >= deadline:
                reason = (
                    f"{tool.name} is called as often as it may be: {rate.calls} times in {rate.seconds} s"
                )
                self._report_limit(agent, "rate")
                raise LimitReached(reason, taken.retry_after)
            await asyncio.sleep(max(taken.retry_after, _SHORTEST_PAUSE))

    async def _take_place(self, key: str, token: str, places: int, deadline: float) -> None:
        while True:
            seconds = max(0.0, deadline - time.monotonic()) + _SPARE
            taken = await self._counters.take_place(key, token, limit=places, seconds=seconds)
            if taken.allowed:
                return
            pause = min(taken.retry_after or _LOOK_AGAIN, _LOOK_AGAIN)
            if time.monotonic() + pause >= deadline:
                raise LimitReached(
                    f"as many calls of it are in progress as may be: {places}", taken.retry_after
                )
            await asyncio.sleep(pause)

    async def _give_back(self, key: str, token: str) -> None:
        """Give a place back; a failure is only logged.

        The result of the call matters more, and the place expires by itself.
        """
        try:
            await self._counters.give_place_back(key, token)
        except StoreUnavailable as error:
            logger.warning("a place of %s is given back late: %s", key, error)

    def _check_limit(
        self, agent: Agent, taken: LimitDecision, of: Measure, quota: tuple[Holder, int, int]
    ) -> None:
        if not taken.allowed:
            per, seconds, limit = quota
            self._report_limit(agent, _WORDS[of].replace(" ", "_"))
            whose = "this user" if per == "user" else "all users of this agent"
            state = "used up or reserved" if of == "tokens" else "used up"
            reason = f"the quota of {limit} {_WORDS[of]} in {seconds} s for {whose} is {state}"
            raise LimitReached(reason, taken.retry_after)

    def _report_limit(self, agent: Agent, limit: str) -> None:
        if self._reached is not None:
            self._reached(agent.name, limit)


_Window = tuple[Holder, int]


def _list_quotas(agent: Agent, of: Measure) -> list[tuple[Holder, int, int]]:
    """Return holder, seconds and limit of each quota. Of two quotas for one window, the smaller limit."""
    windows: dict[_Window, int] = {}
    for quota in agent.terms.quotas:
        if quota.of == of:
            window = quota.per, quota.seconds
            windows[window] = min(windows.get(window, quota.limit), quota.limit)
    return [(per, seconds, limit) for (per, seconds), limit in windows.items()]


def _counter_key(agent: Agent, user: str, of: Measure, window: _Window) -> str:
    per, seconds = window
    return f"{of}|{agent.source}|{per}|{seconds}|{user if per == 'user' else ''}"


class LimitedCaller(ToolCaller):
    """Makes calls within quotas, rates and places.

    Waits for rates and places. A refused call is answered with the reason, for the model. The user is the
    principal of the task that makes the call.
    """

    def __init__(self, dispatcher: Dispatcher, limits: Quotas, observer: CallObserver | None = None) -> None:
        super().__init__(dispatcher, observer)
        self._limits = limits

    async def make_call(
        self, call: PreparedCall, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Make a call of an agent, or answer it with its refusal."""
        if not isinstance(call.action, Tool) or not (agent.terms.policies or agent.terms.quotas):
            return await super().make_call(
                call, event_id=event_id, agent=agent, remaining=remaining, may_be_late=may_be_late
            )
        started = time.monotonic()
        patience = min(call.action.timeout or agent.limits.call_timeout, remaining)
        try:
            async with self._limits.reserve_call(
                agent, current_principal().id, call.action, event_id, patience=patience
            ):
                seconds_left = remaining - (time.monotonic() - started)
                return await super().make_call(
                    call, event_id=event_id, agent=agent, remaining=seconds_left, may_be_late=may_be_late
                )
        except LimitReached as error:
            outcome = _at_limit(call, error)
        except StoreUnavailable as error:
            logger.warning(
                "request %s: the limits of %s are unknown: %s", request_id(), call.action.name, error
            )
            outcome = failed_outcome(Reason.TOOL_FAILED, "not called: its limits cannot be looked up now")
        return _refuse_call(call, outcome, time.monotonic() - started)


def _at_limit(call: PreparedCall, error: LimitReached) -> CallOutcome:
    if call.again:  # "denied" would say that nothing has happened
        return unknown_outcome(f"the call was posted before a restart, and is not posted again: {error}")
    return failed_outcome(Reason.DENIED, str(error), retry_after=error.retry_after)


def _refuse_call(call: PreparedCall, outcome: CallOutcome, seconds: float) -> CallFinished:
    return CallFinished(call.tool_call.id, call.tool_call.name, outcome.result, outcome.failed, seconds)


_CHARACTERS_A_TOKEN = 4  # of English text, about; only where the server does not say what it used


@asynccontextmanager
async def meter_model(
    model: Model, limits: Quotas, agent: Agent, user: str, run: str
) -> AsyncIterator[Model]:
    """Give a run a model limited by the agent's token quotas.

    The model itself if there are no such quotas. `run` is the name used with `Quotas.admit_run`; its
    reservation is given back if the run ends without a request to the model.
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
    """Reserves tokens before each answer, and counts the used ones."""

    def __init__(self, model: Model, limits: Quotas, agent: Agent, user: str, run: str) -> None:
        self._model = model
        self._limits = limits
        self._agent = agent
        self._user = user
        self._run = run
        self._used = False

    @property
    def name(self) -> str:
        """The display name of the model."""
        return self._model.name

    async def tool_limit(self) -> int:
        """Return how many declarations one request may have; raises `ModelError`."""
        return await self._model.tool_limit()

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool], options: Options
    ) -> AsyncGenerator[StreamItem]:
        """Yield the pieces of one answer.

        Raises `LimitReached` before the first piece if no tokens are left. The tokens of an answer that
        breaks off are estimated and counted.
        """
        expected = self._expected_tokens(messages, options.max_tokens)
        await self._limits.reserve_tokens(self._agent, self._user, self._run, expected)
        self._used = True
        usage: Usage | None = None
        characters = 0
        try:
            async with aclosing(self._model.stream(messages, tools, options)) as items:
                async for item in items:
                    match item:
                        case TextDelta() | ReasoningDelta():
                            characters += len(item.text)
                        case Turn():
                            usage = item.usage
                    yield item
        finally:
            await self._settle_tokens(
                _estimate_tokens(messages, characters) if usage is None else usage.total_tokens
            )

    async def close(self) -> None:
        """Give back the reservation of a request never made."""
        if not self._used:
            await self._settle_tokens(0)

    def _expected_tokens(self, messages: Sequence[Message], max_tokens: int | None) -> int:
        """Return the tokens to reserve for an answer.

        The usual number, within question and `max_tokens`, but always more than the question.
        """
        question, usual = _estimate_tokens(messages, 0), self._limits.usual_tokens(self._agent)
        return max(question + 1, usual if max_tokens is None else min(usual, question + max_tokens))

    async def _settle_tokens(self, tokens: int) -> None:
        try:
            await self._limits.settle_tokens(self._agent, self._user, self._run, tokens)
        except StoreUnavailable as error:
            logger.warning("request %s: %d tokens were not counted: %s", request_id(), tokens, error)


def _estimate_tokens(messages: Sequence[Message], characters: int) -> int:
    return (len(str(messages)) + characters) // _CHARACTERS_A_TOKEN
