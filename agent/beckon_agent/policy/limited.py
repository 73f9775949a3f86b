"""Calls within their limits."""

import logging
import time

from beckon_agent.calling.caller import Caller, CallObserver
from beckon_agent.calling.dispatch import Dispatcher
from beckon_agent.calling.exchange import Outcome, failed, unknown
from beckon_agent.calling.prepared import Prepared
from beckon_agent.policy.limits import LimitReached, Limits
from beckon_agent.principals import principal
from beckon_agent.request_id import request_id
from beckon_agent.runs import Agent, CallFinished
from beckon_agent.store.base import StoreUnavailable
from beckon_contract.failures import Reason
from beckon_contract.tools import Tool

logger = logging.getLogger(__name__)


class LimitedCaller(Caller):
    """Makes calls as soon as quotas, rates and places let them; tells the model where they do not.

    The user is the principal of the task that makes the call.
    """

    def __init__(self, dispatcher: Dispatcher, limits: Limits, observer: CallObserver | None = None) -> None:
        super().__init__(dispatcher, observer)
        self._limits = limits

    async def make(
        self, call: Prepared, *, event_id: str, agent: Agent, remaining: float, may_be_late: bool = False
    ) -> CallFinished:
        """Make a call of an agent, or answer it with its refusal."""
        if not isinstance(call.way, Tool) or not (agent.terms.policies or agent.terms.quotas):
            return await super().make(
                call, event_id=event_id, agent=agent, remaining=remaining, may_be_late=may_be_late
            )
        begun = time.monotonic()
        patience = min(call.way.timeout or agent.limits.call_timeout, remaining)
        try:
            async with self._limits.call(agent, principal().id, call.way, event_id, patience=patience):
                left = remaining - (time.monotonic() - begun)
                return await super().make(
                    call, event_id=event_id, agent=agent, remaining=left, may_be_late=may_be_late
                )
        except LimitReached as error:
            outcome = _at_limit(call, error)
        except StoreUnavailable as error:
            logger.warning("request %s: the limits of %s are unknown: %s", request_id(), call.way.name, error)
            outcome = failed(Reason.TOOL_FAILED, "not called: its limits cannot be looked up now")
        return _refused(call, outcome, time.monotonic() - begun)


def _at_limit(call: Prepared, error: LimitReached) -> Outcome:
    if call.again:  # "denied" would say that nothing has happened
        return unknown(f"the call was posted before a restart, and is not posted again: {error}")
    return failed(Reason.DENIED, str(error), retry_after=error.retry_after)


def _refused(call: Prepared, outcome: Outcome, seconds: float) -> CallFinished:
    return CallFinished(call.asked.id, call.asked.name, outcome.result, outcome.failed, seconds)
