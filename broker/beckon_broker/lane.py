"""The delivery state of one Trigger: its subscription and its concurrency."""

import asyncio
from dataclasses import dataclass

from beckon_broker.topology import Subscription


@dataclass(slots=True)
class Lane:
    """The deliveries of one Trigger; a change applies from the next attempt.

    A lane outlives its Trigger until its last delivery is over: accepted events are delivered to the
    Trigger's last subscriber. `open` counts the deliveries waiting or in progress.
    """

    subscription: Subscription
    slots: asyncio.Semaphore
    open: int = 0
