"""One Trigger's way out: its present subscription, and how many of its attempts run at once."""

import asyncio
from dataclasses import dataclass

from beckon_broker.topology import Subscription


@dataclass(slots=True)
class Lane:
    """The deliveries of one Trigger. A changed Trigger changes what the next attempt does.

    A lane outlives its Trigger until its last delivery is over: what was accepted for a Trigger
    is delivered, to where it last pointed. `open` counts the deliveries waiting or under way.
    """

    subscription: Subscription
    slots: asyncio.Semaphore
    open: int = 0
