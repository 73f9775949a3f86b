"""Posts of events, their acknowledgements, and the connection that carries one post at a time.

The connection is kept alive, and speaks HTTP/1.1.
"""

import asyncio
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import httptools

from beckon_contract.knative.broker_class import DEDUPLICATION_HEADER

_LONGEST_ANSWER = 65_536
_DEDUPLICATION = DEDUPLICATION_HEADER.encode()

RawHeader = tuple[bytes, bytes]


class Target(NamedTuple):
    """The destination of events: URL, trusted certificates, token audience.

    `ca_certs` are PEM certificates to trust in addition to the system's; `audience` is empty if no token is
    needed. It is a plain tuple, because it is looked up for every post.
    """

    url: str
    ca_certs: str = ""
    audience: str = ""


_TRY_LATER = frozenset((429, 503))
# After these a Broker has not taken the event: it does not know the Broker yet, or is busy (knative/specs,
# data-plane.md), or has not read the request.
_NOT_TAKEN = frozenset((404, 408, 425, 429, 503))


@dataclass(frozen=True, slots=True)
class Ack:
    """The acknowledgement of one event; `status` 0 means no answer.

    `sent` is true if the Broker may have got the event although no answer came. With `no_token` it was not
    posted at all, because no token for its Broker was available. Within `deduplication` seconds of its post,
    the Broker knows a second one of the same call.
    """

    status: int
    error: str = ""
    retry_after: str = ""
    sent: bool = True
    no_token: bool = False
    deduplication: int = 0

    @property
    def accepted(self) -> bool:
        """True if the Broker took the event."""
        return 200 <= self.status < 300

    @property
    def doubtful(self) -> bool:
        """True if the event may be delivered despite a failed acknowledgement.

        A Broker that delivers before it answers returns 5xx when any Trigger failed, even one that has
        nothing to do with this call; and a proxy may time out first.
        """
        return (self.status >= 500 and self.status not in _NOT_TAKEN) or (self.status == 0 and self.sent)

    @property
    def not_taken(self) -> bool:
        """True if the Broker lacks the event, but may take it later."""
        return self.status in _NOT_TAKEN or (self.status == 0 and not self.sent and not self.no_token)

    @property
    def try_later(self) -> bool:
        """True if the Broker was busy, and the event is not at fault."""
        return self.status in _TRY_LATER

    def describe(self) -> str:
        """Describe the Broker's answer in a few words."""
        return f"HTTP status {self.status}" if self.status else self.error


@dataclass(slots=True)
class Post:
    """One complete request, and the callback for its acknowledgement.

    `deadline` is in the loop's time. `begin` is called when it goes out, and may withdraw it by returning
    false. With `repeats` it goes out again if a kept-alive connection is lost in the middle. `sent` is true
    once it has gone out.
    """

    message: bytes
    then: Callable[[Ack], None]
    deadline: float
    begin: Callable[[], bool] | None = None
    repeats: bool = False
    sent: bool = False

    def fail(self, reason: str) -> None:
        """End it without an answer."""
        self.then(Ack(0, reason, sent=self.sent))


class Owner(Protocol):
    """The owner of the connections."""

    def free(self, connection: "PostConnection") -> None:
        """Take back a connection ready for another post."""

    def lost(self, connection: "PostConnection", again: Post | None) -> None:
        """Forget a closed connection, and send the post `again` on another."""


class PostConnection(asyncio.Protocol):
    """Sends posts and reads the status of their answers; bodies are skipped, up to 64 KiB."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._transport: asyncio.Transport | None = None
        # httptools has no types; the parser calls the on_… methods below.
        self._parser = httptools.HttpResponseParser(self)
        self._post: Post | None = None
        self._reused = False
        self._received = 0
        self._retry_after = ""
        self._deduplication = 0
        self.idle_since = 0.0
        self._poll = select.poll()

    def usable(self) -> bool:
        """Return True if a post may be sent now.

        The other side may have closed the connection, and the event loop may not have seen that yet. A post
        that went out now would be lost, with an uncertain outcome: so the socket itself is checked.
        """
        return self._transport is not None and not self._transport.is_closing() and not self._poll.poll(0)

    def send(self, post: Post) -> None:
        """Send a post; the connection must be free."""
        self._post = post
        post.sent = True
        self._received = 0
        self._retry_after = ""
        self._deduplication = 0
        cast(asyncio.Transport, self._transport).write(post.message)

    def overdue(self, now: float) -> bool:
        """Return True if the current post is past its deadline."""
        return self._post is not None and self._post.deadline <= now

    def give_up(self, reason: str) -> None:
        """End the current post without an acknowledgement, and the connection."""
        post, self._post = self._post, None
        self.close()
        if post is not None:
            post.fail(reason)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.abort()

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport; uvloop's is no subclass of asyncio's."""
        self._transport = cast(asyncio.Transport, transport)
        self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        """Read the answer; unrequested data ends the connection."""
        self._received += len(data)
        if self._post is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.give_up("its answer is not one to a POST of HTTP/1.1")
            return
        if self._received > _LONGEST_ANSWER:
            self.give_up("its answer is too long")

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the post, or repeat it on another connection if allowed.

        A server may close a kept-alive connection at the very moment a post goes out; it may also have died
        while it delivered the event. The two cannot be distinguished, so a call is not sent again: its tool
        may not recognise a second delivery.
        """
        # The parser and this refer to each other, and the collector seldom runs.
        del self._parser
        post, self._post = self._post, None
        if post is not None and self._reused and not self._received and post.repeats:
            post.repeats = False
            self._owner.lost(self, post)
            return
        self._owner.lost(self, None)
        if post is not None:
            post.fail("the connection was lost before it acknowledged")

    # What the parser calls.

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store the two headers that matter; others are ignored."""
        name = name.lower()
        if name == b"retry-after":
            self._retry_after = value.decode("latin-1")
        elif name == _DEDUPLICATION and value.isdigit():
            self._deduplication = int(value[:6])

    def on_message_complete(self) -> None:
        """Pass the acknowledgement on, and the connection back."""
        status = self._parser.get_status_code()
        post = self._post
        if post is None or status < 200:
            return
        self._post = None
        self._reused = True
        if self._parser.should_keep_alive():
            self._owner.free(self)
        else:
            self.close()
        post.then(Ack(status, retry_after=self._retry_after, deduplication=self._deduplication))
