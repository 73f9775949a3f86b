"""Probes of Brokers: whether replies arrive, found out now and then.

The shim makes a probe and answers it itself (`shim/beckon_shim/probes.py`); the operator asks for one at each
Broker with Ready Tools, and judges by the answer. Every replica of the operator does, so that one that begins
to lead knows the results. A probe that says nothing about replies, because the shim or the Broker does not
take it, changes nothing: the condition Available is about that.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp

from beckon_operator.metrics import Metrics
from beckon_operator.objects import BrokerKey

logger = logging.getLogger(__name__)

_PARALLEL = 8
_LOOK_SECONDS = 1.0  # between two looks for new Brokers
_ANSWER_SECONDS = 10.0  # beyond the deadline of a probe
# The ends of a call that a Broker has, or may have, taken.
_LOST = frozenset(("timeout", "outcome-unknown"))


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    """Seconds between two probes of a Broker, for one probe, and before one that confirms a loss.

    An interval of 0 means no probes. The shim waits for 10 s at most, and its answer serves for another
    second, which the pause before the second probe must exceed.
    """

    interval: float
    wait: float = 10.0
    confirm: float = 2.0


class ReplyProbes:
    """Probes Brokers; `report` gets each result: whether replies arrive.

    `brokers` returns those to probe. `url` is the shim's address for replies.
    """

    def __init__(
        self,
        url: str,
        times: ProbeTimes,
        brokers: Callable[[], set[BrokerKey]],
        report: Callable[[BrokerKey, bool], None],
        metrics: Metrics,
    ) -> None:
        self._url = url.rstrip("/")
        self._times = times
        self._brokers = brokers
        self._report = report
        self._metrics = metrics
        self._probed: set[BrokerKey] = set()

    async def probe_brokers(self) -> None:
        """Probe until cancelled; without an interval, return at once.

        A new Broker is probed within a second, which its Tools would else show as unknown for an interval.
        """
        timeout = aiohttp.ClientTimeout(total=self._times.wait + _ANSWER_SECONDS)
        places = asyncio.Semaphore(_PARALLEL)
        async with aiohttp.ClientSession(timeout=timeout) as session, asyncio.TaskGroup() as group:
            while self._times.interval:
                new = self._brokers() - self._probed
                self._probed |= new
                for broker in sorted(new):
                    group.create_task(self._probe_regularly(session, places, broker))
                await asyncio.sleep(min(_LOOK_SECONDS, self._times.interval))

    async def _probe_regularly(
        self, session: aiohttp.ClientSession, places: asyncio.Semaphore, broker: BrokerKey
    ) -> None:
        """Probe a Broker until it has no Tools any more."""
        reported = False
        while broker in self._brokers():
            started = time.monotonic()
            async with places:
                arrive = await self._probe(session, broker)
            if arrive is not None:
                self._metrics.replies_arrive.labels("/".join(broker)).set(arrive)
                self._report(broker, arrive)
                reported = True
            await asyncio.sleep(max(0.0, self._times.interval - (time.monotonic() - started)))
        self._probed.discard(broker)
        if reported:
            self._metrics.replies_arrive.remove("/".join(broker))

    async def _probe(self, session: aiohttp.ClientSession, broker: BrokerKey) -> bool | None:
        """Return whether replies arrive, after a second probe where the first one lost its reply."""
        arrive = await self._attempt(session, broker)
        if arrive is False:  # an event is lost where a pod of the Broker ends, too
            await asyncio.sleep(self._times.confirm)
            arrive = await self._attempt(session, broker)
        return arrive

    async def _attempt(self, session: aiohttp.ClientSession, broker: BrokerKey) -> bool | None:
        """Return whether the reply to a probe arrives, `None` if the probe does not say."""
        namespace, name = broker
        headers = {"prefer": f"wait={self._times.wait:g}"}
        try:
            async with session.post(f"{self._url}/probes/{namespace}/{name}", headers=headers) as response:
                if response.status == 200:
                    return True
                problem = await response.json(content_type=None)
                kind = str(problem["type"]).rpartition("/")[2].rpartition(":")[2]
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError) as error:
            kind = repr(error)
        if kind in _LOST:
            return False
        logger.info("the probe of Broker %s/%s says nothing about replies: %s", namespace, name, kind)
        self._metrics.failures.labels("probe").inc()
        return None
