"""Notifications: cancelled requests, and changes of the list of tools.

A cancellation may reach another replica than the call did. A catalogue is a value that its source replaces,
so it is compared from time to time, and only while there are listeners. Every replica follows the same
cluster, so any of them can serve a listener.
"""

import asyncio
import contextlib
import contextvars
import hashlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass

import orjson

from beckon_agent.agents.registry import AgentHandle
from beckon_agent.core.context import current_principal
from beckon_agent.service import Service
from beckon_agent.store.base import StoreUnavailable
from beckon_agent.store.counters import Counters
from beckon_contract.resources.tools import Tool

SendRequest = Callable[[Mapping[str, object]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The requested agent, and the session id.

    Only clients before 2026-07-28 have a session id, and by it the `input_methods` that they answer.
    `send_request` sends a JSON-RPC request to the client, on the stream of its answer. It is `None` if the
    client cannot answer one. `is_logged` is True if the session's client requested log messages.
    """

    hosted: AgentHandle
    session: str | None
    send_request: SendRequest | None = None
    input_methods: frozenset[str] = frozenset()
    is_logged: bool = False


current: ContextVar[RequestInfo] = ContextVar("mcp_request")


logger = logging.getLogger(__name__)

Key = tuple[str | None, str | int | None]
"""The session and the id of a request; without a session only the end of the connection cancels."""

_REMEMBERED = 600.0  # seconds; no call takes longer to begin at the other replica
_ANY_NUMBER = 2**53


class Cancellations:
    """The cancelled calls of all replicas with the same store.

    Without a store there are none. Replicas look every `look_every` seconds, for the first time when a call
    has taken that long: most calls have ended by then.
    """

    def __init__(self, counters: Counters | None = None, look_every: float = 1.0) -> None:
        self._counters = counters
        self._look_every = look_every
        self._noting: set[asyncio.Task[None]] = set()

    async def announce_call(self, key: Key) -> None:
        """Announce a call cancelled by the current principal to other replicas."""
        if self._counters is None or key[0] is None:
            return
        # A notification has its answer at once, and what serves it ends with that.
        noting = asyncio.create_task(self._note_cancellation(self._counters, _counter_name(key)))
        self._noting.add(noting)
        noting.add_done_callback(self._noting.discard)
        await asyncio.shield(noting)

    async def _note_cancellation(self, counters: Counters, name: str) -> None:
        try:
            await counters.take_amount(name, 1, limit=_ANY_NUMBER, window=_REMEMBERED)
        except StoreUnavailable as error:
            logger.warning("a call is not cancelled at other replicas: %s", error)

    async def listen_for(self, key: Key, cancel: Callable[[], None]) -> None:
        """Cancel a call of the current principal once another replica announces it."""
        if self._counters is None or key[0] is None:
            return
        name, cancelled = _counter_name(key), False
        while not cancelled:
            await asyncio.sleep(self._look_every)
            try:
                cancelled = not (
                    await self._counters.take_amount(name, 0, limit=0, window=_REMEMBERED)
                ).allowed
            except StoreUnavailable as error:
                logger.warning("whether a call is cancelled cannot be looked up: %s", error)
        cancel()


def _counter_name(key: Key) -> str:
    identity = orjson.dumps([current_principal().id, *key])
    return f"mcp-cancelled|{hashlib.sha256(identity).hexdigest()}"


TOO_MANY = "the limit of clients that wait for changes of the tools is reached; list them from time to time"

_LOOK_SECONDS = 0.5


class TooManyListeners(Exception):
    """The limit of listeners is reached."""


class Listener:
    """A client waiting for changes, until `ended`. Changes while it is busy are reported as one."""

    def __init__(self, service: Service, agent: str) -> None:
        self.ended = False
        self._news = asyncio.Event()
        self._service = service
        self._agent = agent
        self._asker = contextvars.copy_context()  # the registry shows each principal its own tools
        self.seen = self.read_tools()

    async def wait_for_change(self) -> bool:
        """Wait for a change or the end of the service. Returns `True` for a change, `False` at the end."""
        await self._news.wait()
        self._news.clear()
        return not self.ended

    def read_tools(self) -> Mapping[str, Tool]:
        """Return the current tools, as the listener's principal sees them."""
        agent = self._asker.run(self._service.registry.find, self._agent)
        return agent.catalogue.current.tools if isinstance(agent, AgentHandle) else {}

    def notify_change(self) -> None:
        """Report a change to the listener."""
        self._news.set()

    def end_stream(self) -> None:
        """End the listener; no more changes are reported."""
        self.ended = True
        self._news.set()


class Changes:
    """All listeners, at most `most`."""

    def __init__(self, service: Service, most: int) -> None:
        self._service = service
        self._most = most
        self._listeners: set[Listener] = set()
        self._looking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def is_full(self) -> bool:
        """True if no more listeners are admitted."""
        return len(self) >= self._most

    @contextlib.contextmanager
    def listen_to(self, agent: str) -> Iterator[Listener]:
        """Wait for the changes of an agent's tools in this block; raises `TooManyListeners`."""
        if self.is_full:
            raise TooManyListeners(TOO_MANY)
        listener = Listener(self._service, agent)
        self._listeners.add(listener)
        if self._looking is None:
            self._looking = asyncio.create_task(self._compare_tools())
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    async def stop_streams(self) -> None:
        """End all streams, and stop looking for changes."""
        self._end_streams()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _compare_tools(self) -> None:
        while self._listeners:
            if self._service.draining:
                self._end_streams()
            compared = _ToolListComparer()
            for listener in self._listeners:
                now = listener.read_tools()
                if compared.are_different(listener.seen, now):
                    listener.notify_change()
                listener.seen = now
            await asyncio.sleep(_LOOK_SECONDS)
        self._looking = None

    def _end_streams(self) -> None:
        for listener in self._listeners:
            listener.end_stream()


class _ToolListComparer:
    """Compares lists of tools, each pair once. Many listeners see the same lists."""

    def __init__(self) -> None:
        # The lists are cached with the verdict, for as long as their addresses name them.
        self._known: dict[tuple[int, int], tuple[bool, object, object]] = {}

    def are_different(self, before: Mapping[str, Tool], now: Mapping[str, Tool]) -> bool:
        if before is now:
            return False
        key = (id(before), id(now))
        if key not in self._known:
            self._known[key] = (_listed_fields(before) != _listed_fields(now), before, now)
        return self._known[key][0]


def _listed_fields(tools: Mapping[str, Tool]) -> list[tuple[object, ...]]:
    """Return the fields of tools shown in a list. The fields for reaching a tool are not among them."""
    return [
        (
            one.name,
            one.event_type,
            one.description,
            one.parameters,
            one.returns,
            one.read_only,
            one.destructive,
            one.idempotent,
        )
        for one in tools.values()
    ]
