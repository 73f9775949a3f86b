"""A Broker that loses what comes before all of its parts know a ready Trigger, as Knative's may."""

import asyncio
from collections.abc import Sequence

import pytest

from beckon_cli.probe.cases import ProbeOptions
from beckon_cli.probe.embedded import embedded_broker
from beckon_cli.probe.report import Row
from beckon_cli.probe.subscriptions import FolderSubscriptions, Manifest
from beckon_cli.probe.suite import BrokerUnderTest, new_run, probe_broker
from tests.patience import PATIENCE


class FirstRow(Exception):
    """The first case is over."""


class ReadyTooEarly(FolderSubscriptions):
    """Calls Triggers ready that the Broker gets a moment later."""

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        await super().apply([each for each in manifests if each["kind"] == "Broker"])
        self._applying = asyncio.create_task(self._apply_later(manifests))

    async def _apply_later(self, manifests: Sequence[Manifest]) -> None:
        await asyncio.sleep(0.5)
        await super().apply(manifests)


async def test_the_first_events_are_posted_again_while_none_comes() -> None:
    def end(row: Row) -> None:
        raise FirstRow(row.outcome)

    async with embedded_broker() as process:
        subscriptions = ReadyTooEarly(process.folder, process.url, new_run())
        broker = BrokerUnderTest(process.url, "early", subscriptions, owned=True)
        with pytest.raises(FirstRow):
            await asyncio.wait_for(
                probe_broker(broker, ProbeOptions(wait=15, settle=0.1), new_run(), end), 2 * PATIENCE
            )
