"""Reading the feed of events for one subscription, and following it for many.

A subscription is a type of events in a namespace, and a filter. Its cursor is the position of the feed up to
which it has read.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from beckon_agent.store.base import StoreUnavailable
from beckon_agent.store.feed import Feed, FeedEntry
from beckon_contract.cloudevents.events import CloudEvent, from_structured
from beckon_contract.jsontext import loads
from beckon_contract.knative.filters import EventFilter, passes_all

logger = logging.getLogger(__name__)

MOST_EVENTS = 100  # of one page
_MOST_SIZE = 1024 * 1024  # characters of the events of one page, unless a single one is larger
_SCANNED = 500  # events to which a filter is applied for one page
_REMEMBERED = 8 * 1024 * 1024  # characters of the newest events, in memory for streams
_LOOK_SECONDS = 0.25


class StoredEvent:
    """An event of the feed. It is parsed once, however many subscriptions look at it."""

    def __init__(self, entry: FeedEntry) -> None:
        self.entry = entry

    @cached_property
    def event(self) -> CloudEvent:
        """The event, with its attributes."""
        return from_structured(self.entry.event.encode())

    @cached_property
    def occurrence(self) -> dict[str, Any]:
        """The members of an EventOccurrence (SEP-3415), without a cursor. `data` is the whole CloudEvent.

        A `source` and an `id` together name an event (CloudEvents 1.0, id). A source has no spaces.
        """
        event = self.event
        came = datetime.fromtimestamp(self.entry.came_at, UTC).isoformat(timespec="milliseconds")
        return {
            "eventId": f"{event.source} {event.id}",
            "name": event.type,
            "timestamp": event.time or came,
            "data": loads(self.entry.event.encode()),  # integers of any length stay exact
        }


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a client wants to read.

    Events that came before `oldest` are left out, in seconds since the epoch.
    """

    namespace: str
    event_type: str
    passes: EventFilter = passes_all
    oldest: float | None = None

    def selects(self, stored: StoredEvent) -> bool:
        """Return True if an event is one of the subscription, whatever its age."""
        entry = stored.entry
        return (entry.namespace, entry.type) == (self.namespace, self.event_type) and self.passes(
            stored.event.attributes()
        )

    def is_too_old(self, stored: StoredEvent) -> bool:
        """Return True if an event came too long ago."""
        return self.oldest is not None and stored.entry.came_at < self.oldest


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    """Events of a subscription. `cursor` is the position behind them.

    `truncated` is true if events were skipped that had come before, `has_more` if more can be read at once.
    """

    events: Sequence[StoredEvent]
    cursor: int
    truncated: bool = False
    has_more: bool = False


async def read_page(
    feed: Feed, wanted: Subscription, after: int | None, most: int = MOST_EVENTS
) -> SubscriptionPage:
    """Return the next events behind a cursor. `None` is the present end of the feed."""
    if after is None:
        return SubscriptionPage((), (await feed.read(0, most=1)).last)
    page = await feed.read(after, most=_SCANNED, namespace=wanted.namespace, event_type=wanted.event_type)
    events: list[StoredEvent] = []
    truncated, size = after < page.start, 0
    for entry in page.entries:
        stored = StoredEvent(entry)
        if not wanted.selects(stored):
            continue
        if wanted.is_too_old(stored):
            truncated = True
            continue
        size += len(entry.event)
        if len(events) == most or (events and size > _MOST_SIZE):
            return SubscriptionPage(events, entry.position - 1, truncated, has_more=True)
        events.append(stored)
    if len(page.entries) == _SCANNED:
        return SubscriptionPage(events, page.entries[-1].position, truncated, has_more=True)
    read = page.entries[-1].position if page.entries else 0
    return SubscriptionPage(events, max(page.last, read), truncated)


class TooManyStreams(Exception):
    """The limit of streams is reached."""


class FeedTail:
    """Follows the feed for all streams of this replica, so that each new event is read once.

    It looks for new events only while there are streams. `is_draining` is true once they have to end.
    """

    def __init__(self, feed: Feed, most: int, is_draining: Callable[[], bool]) -> None:
        self.most = most
        self._feed = feed
        self._is_draining = is_draining
        self._newest: deque[StoredEvent] = deque()
        self._size = 0
        self._start = 0  # the position behind which all events are in memory
        self._last = 0
        self._streams = 0
        self._changed = asyncio.Event()
        self._ended = False
        self._following: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Follow the feed during the block. Raises `TooManyStreams`."""
        if self._streams >= self.most:
            raise TooManyStreams
        self._streams += 1
        if self._following is None:
            self._following = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            self._streams -= 1

    def events_after(self, position: int) -> Sequence[StoredEvent] | None:
        """Return the events behind a position; `None` if only the store has all of them."""
        if self._start == 0 or position < self._start:
            return None
        return [stored for stored in self._newest if stored.entry.position > position]

    async def wait_for_news(self, position: int, seconds: float) -> bool:
        """Wait for events behind a position; return False if no more are followed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._last <= position and not self._ended:
                    await self._changed.wait()
        return not self._ended

    async def stop(self) -> None:
        """End all streams."""
        self._end_streams()
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    async def _follow(self) -> None:
        while self._streams:
            if self._is_draining():
                self._end_streams()
            try:
                await self._look()
            except StoreUnavailable as error:
                logger.warning("new events are read later: %s", error)
            except Exception:  # a mistake of ours must not silence the streams for good
                logger.exception("new events cannot be read")
            await asyncio.sleep(_LOOK_SECONDS)
        self._newest.clear()
        self._size = self._start = self._last = 0
        self._following = None

    async def _look(self) -> None:
        if self._start == 0:
            self._start = self._last = (await self._feed.read(0, most=1)).last
            self._report_change()  # there may have been events since a stream has read its first page
            return
        page = await self._feed.read(self._last, most=_SCANNED)
        for entry in page.entries:
            self._newest.append(StoredEvent(entry))
            self._size += len(entry.event)
            self._last = entry.position
        while self._size > _REMEMBERED:
            oldest = self._newest.popleft().entry
            self._size -= len(oldest.event)
            self._start = oldest.position
        if page.entries:
            self._report_change()

    def _report_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _end_streams(self) -> None:
        self._ended = True
        self._changed.set()


def oldest_of(max_age: float | None) -> float | None:
    """Return the time before which events are too old, for an age in milliseconds."""
    return None if max_age is None else time.time() - max_age / 1000
