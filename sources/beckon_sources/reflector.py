"""A mirror of one collection of the API server: listed once, then watched."""

import asyncio
import logging
import random
import time
from typing import Protocol

from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection, Document, Name, Refused, Unreachable, name_of, version_of
from beckon_sources.watch_status import Contact

logger = logging.getLogger(__name__)

_WATCH_SECONDS = (240, 360)  # a random time each, so that watches of several replicas end apart
_STEADY = 5.0  # seconds; a watch that lasted as long is no sign of trouble when it ends
_TRIES = 3  # so often a watch is resumed where it broke off; then the collection is read anew


class Sink(Protocol):
    """Receives the objects of a collection. Its handling of one object may not stop the others."""

    def put(self, document: Document) -> None:
        """Take a new or changed object."""
        ...

    def drop(self, namespace: str, name: str) -> None:
        """Remove a deleted object."""
        ...


class Pauses:
    """Growing pauses: exponential back-off with jitter.

    Because of the jitter, replicas do not retry all at once.
    """

    def __init__(self, first: float = 0.25, longest: float = 10.0) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def reset(self) -> None:
        """Begin with the shortest again."""
        self._next = self._first

    async def wait(self) -> None:
        """Wait a little, the next time about twice as long."""
        pause = self._next * random.uniform(0.5, 1.0)  # noqa: S311  # jitter is no secret
        self._next = min(self._longest, self._next * 2)
        await asyncio.sleep(pause)


class Reflector:
    """Passes every object of a collection to a sink, once per version.

    Missed deletions are found when the collection is listed again: after the server no longer knows the last
    version (410), and after several broken watches.
    """

    def __init__(
        self,
        server: ApiClient,
        collection: Collection,
        sink: Sink,
        contact: Contact,
        *,
        required: bool = True,
    ) -> None:
        self._server = server
        self._collection = collection
        self._sink = sink
        self._contact = contact
        self._line = contact.line(str(collection), required=required)
        self._versions: dict[Name, str] = {}
        self._version = ""
        self._broken = 0
        self._watching = False

    async def run(self) -> None:
        """Mirror until cancelled."""
        pauses = Pauses()
        while True:
            started = time.monotonic()
            quiet = await self._follow_once()
            if time.monotonic() - started >= _STEADY:
                pauses.reset()
                if quiet:
                    continue
            await pauses.wait()

    async def _follow_once(self) -> bool:
        """List or resume, and watch; return True if the watch ended normally."""
        self._watching = False
        try:
            if not self._version:
                await self._list()
            await self._watch()
        except Refused as error:
            self._resume_or_forget(keep=error.passing)
            if not error.gone:
                self._contact.note_trouble(self._line, str(error), None if error.passing else error.status)
        except Unreachable as error:
            self._resume_or_forget(keep=True)
            if not self._watching:  # a watch may break off; what counts is whether the next one begins
                self._contact.note_trouble(self._line, f"the API server does not answer ({error})")
        except Exception:  # a mistake of ours must not end the mirror for good
            self._version = ""
            logger.exception("following %s failed; reading it anew", self._collection)
        else:
            return True
        return False

    def _resume_or_forget(self, *, keep: bool) -> None:
        """Keep or forget the last version for the next try."""
        self._broken += 1
        if not keep or self._broken > _TRIES:
            self._version = ""
            self._broken = 0

    async def _list(self) -> None:
        seen: set[Name] = set()
        page = await self._server.list_page(self._collection)
        while True:
            for document in page.items:
                seen.add(self._put(document))
            self._line.note_message()
            if not page.rest:
                break
            page = await self._server.list_page(self._collection, page.rest)
        for name in self._versions.keys() - seen:
            self._drop(name)
        self._version = page.version

    async def _watch(self) -> None:
        seconds = random.randint(*_WATCH_SECONDS)  # noqa: S311  # jitter is no secret
        async with self._server.watch(self._collection, self._version, seconds) as changes:
            self._watching = True
            self._contact.note_working(self._line)
            async for change in changes:
                self._broken = 0
                self._line.note_message()
                match change.type:
                    case "ADDED" | "MODIFIED":
                        self._put(change.document)
                    case "DELETED":
                        self._drop(name_of(change.document))
                self._version = change.version or self._version

    def _put(self, document: Document) -> Name:
        name, version = name_of(document), version_of(document)
        if self._versions.get(name) != version:
            self._versions[name] = version
            try:
                self._sink.put(document)
            except Exception:
                logger.exception("%s: %s/%s is passed over", self._collection.plural, *name)
        return name

    def _drop(self, name: Name) -> None:
        if self._versions.pop(name, None) is not None:
            self._sink.drop(*name)
