"""The operator's probes through the shim and a real broker: RepliesArrive on the Tools of that Broker.

A broker that swallows replies is one whose reply Trigger never passes them, as RabbitMQ's with `replyid: ""`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from beckon_cli.probe.embedded import BrokerProcess, embedded_broker
from beckon_cli.probe.subscriptions import FolderSubscriptions
from beckon_contract.knative.reply_triggers import reply_filter
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BrokerKey
from beckon_operator.reply_probes import ProbeTimes, ReplyProbes
from tests.operator.documents import broker, event_type, reply_trigger, trigger
from tests.operator.judged import Judged, words
from tests.patience import PATIENCE, until
from tests.shim.support import Shim, shim_in_front_of

KEY: BrokerKey = ("team", "default")
PASSES = reply_filter("")
SWALLOWS: dict[str, Any] = {"filter": {"attributes": {"replyid": "never"}}}
TIMES = ProbeTimes(0.05, wait=1.0, confirm=1.2)


class Prober:
    """The operator's probes and their results, with a Judge for the Tools."""

    def __init__(self, url: str, times: ProbeTimes = TIMES) -> None:
        self.judged = Judged(broker(), trigger(), reply_trigger(), event_type())
        self.metrics = Metrics()
        self.brokers = {KEY}
        self._probes = ReplyProbes(url, times, lambda: self.brokers, self._report, self.metrics)

    def ready(self) -> tuple[str, str]:
        """Return what `kubectl get tools` shows as Ready and Reason."""
        return words(self.judged.condition("Ready"))

    def condition(self) -> tuple[str, str]:
        """Return status and reason of RepliesArrive."""
        return words(self.judged.condition("RepliesArrive"))

    def metric(self) -> list[str]:
        """Return the samples about replies."""
        lines = self.metrics.to_text().decode().splitlines()
        return [line for line in lines if line.startswith("beckon_operator_replies_arrive{")]

    def failures(self) -> float:
        """Return how many probes said nothing."""
        return float(self.metrics.failures.labels("probe")._value.get())

    def _report(self, key: BrokerKey, arrive: bool) -> None:
        self.judged.judge.set_replies_arrive(key, arrive)
        self.judged.judge.judge_all()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Probe as long as this lasts."""
        task = asyncio.create_task(self._probes.probe_brokers())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@contextlib.asynccontextmanager
async def shim_before(process: BrokerProcess) -> AsyncIterator[Shim]:
    """Run a shim in front of a broker, which has one Broker for every path."""
    address = process.url.removesuffix("/default/default")
    async with shim_in_front_of(address) as shim:
        yield shim


async def subscribe(process: BrokerProcess, shim: Shim, passes: dict[str, Any]) -> None:
    """Give the Broker a reply Trigger with this filter."""
    spec = {"broker": "default", **passes, "subscriber": {"uri": f"{shim.replies}/replies"}}
    metadata = {"name": "beckon-replies", "namespace": "team"}
    version = "eventing.knative.dev/v1"
    manifests = [
        {"apiVersion": version, "kind": "Broker", "metadata": {"name": "default", "namespace": "team"}},
        {"apiVersion": version, "kind": "Trigger", "metadata": metadata, "spec": spec},
    ]
    await FolderSubscriptions(process.folder, process.url, "replies", 45).apply(manifests)


async def test_a_broker_that_begins_to_swallow_replies_is_seen_in_its_tools() -> None:
    async with embedded_broker({}) as process, shim_before(process) as shim:
        await subscribe(process, shim, PASSES)
        prober = Prober(shim.replies)
        async with prober.running():
            await until(lambda: prober.condition() == ("True", "RepliesArrive"))
            assert prober.ready() == ("True", "Ready")
            assert prober.metric() == ['beckon_operator_replies_arrive{broker="team/default"} 1.0']

            await subscribe(process, shim, SWALLOWS)

            await until(lambda: prober.condition() == ("False", "RepliesLost"))
            assert prober.ready() == ("True", "RepliesLost")
            assert prober.metric() == ['beckon_operator_replies_arrive{broker="team/default"} 0.0']

            await subscribe(process, shim, PASSES)
            await until(lambda: prober.condition() == ("True", "RepliesArrive"))

            prober.brokers = set()
            await until(lambda: prober.metric() == [])


async def test_a_new_broker_is_probed_before_the_interval_of_the_others_is_over() -> None:
    async with embedded_broker({}) as process, shim_before(process) as shim:
        await subscribe(process, shim, PASSES)
        prober = Prober(shim.replies, ProbeTimes(3600.0, wait=1.0, confirm=1.2))
        prober.brokers = set()
        async with prober.running():
            await asyncio.sleep(0)  # it has looked once, and found none
            assert prober.metric() == []

            prober.brokers = {KEY}

            await until(lambda: prober.condition() == ("True", "RepliesArrive"))


@pytest.mark.parametrize("gone", ["shim", "broker"])
async def test_a_probe_that_is_not_taken_changes_nothing(gone: str) -> None:
    async with embedded_broker({}) as process, shim_before(process) as shim:
        await subscribe(process, shim, PASSES)
        prober = Prober(shim.replies)
        async with prober.running():
            await until(lambda: prober.condition() == ("True", "RepliesArrive"))
            if gone == "broker":
                await process.kill()
            else:
                shim.stop.set()
                await shim.running
            before = prober.failures()
            await until(lambda: prober.failures() > before)
            assert prober.condition() == ("True", "RepliesArrive")


async def test_without_an_interval_nothing_is_probed() -> None:
    metrics = Metrics()
    probes = ReplyProbes("http://127.0.0.1:9", ProbeTimes(0), lambda: {KEY}, lambda *_: None, metrics)

    await asyncio.wait_for(probes.probe_brokers(), PATIENCE)
