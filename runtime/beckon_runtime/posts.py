"""Posts of events, the answers to them, and the connection that carries one post at a time.

The connection is kept alive, and speaks HTTP/1.1.
"""

import asyncio
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import httptools

from beckon_contract.knative.broker_class import DEDUPLICATION_HEADER

_LONGEST_HEAD = 65_536
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
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
    """The answer to one event; `status` 0 means no answer, and `error` gives the cause.

    `sent` is true if the receiver may have got the event although no answer came. With `no_token` it was not
    posted at all, because no token for its Broker was available. `complete` is false for a body cut at the
    client's limit.
    """

    status: int
    error: str = ""
    headers: tuple[RawHeader, ...] = ()
    body: bytes = b""
    complete: bool = True
    sent: bool = True
    no_token: bool = False

    def header(self, name: bytes) -> str:
        """Return the value of a header, whose name is given in lower case, or the empty string."""
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == name), "")

    @property
    def retry_after(self) -> str:
        """The header `Retry-After`, or the empty string."""
        return self.header(b"retry-after")

    @property
    def deduplication(self) -> int:
        """The seconds after its post in which the Broker knows a second one of the same call, else 0."""
        value = self.header(_DEDUPLICATION)
        return int(value[:6]) if value.isascii() and value.isdigit() else 0

    @property
    def accepted(self) -> bool:
        """True if the receiver took the event."""
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
    """One complete request, and the callback for the answer to it.

    `deadline` is in the loop's time. `begin` is called when it goes out, and may withdraw it by returning
    false. With `repeats` it goes out again if a kept-alive connection is lost in the middle. `connection` is
    the one on which it has gone out.
    """

    message: bytes
    then: Callable[[Ack], None]
    deadline: float
    begin: Callable[[], bool] | None = None
    repeats: bool = False
    connection: "PostConnection | None" = None

    def fail(self, reason: str) -> None:
        """End it without an answer."""
        self.then(Ack(0, reason, sent=self.connection is not None))


class Owner(Protocol):
    """The owner of the connections."""

    def free(self, connection: "PostConnection") -> None:
        """Take back a connection ready for another post."""

    def lost(self, connection: "PostConnection", again: Post | None) -> None:
        """Forget a closed connection, and send the post `again` on another."""


class PostConnection(asyncio.Protocol):
    """Sends posts and reads the answers, of which it keeps at most `longest_body` bytes of the body."""

    def __init__(self, owner: Owner, longest_body: int) -> None:
        self._owner = owner
        self._longest_body = longest_body
        self._transport: asyncio.Transport | None = None
        # httptools has no types; the parser calls the on_… methods below.
        self._parser = httptools.HttpResponseParser(self)
        # Small tools end lines with LF alone, as a recipient may accept (RFC 9112, section 2.2).
        self._parser.set_dangerous_leniencies(
            lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._post: Post | None = None
        self._reused = False
        self._received = 0
        self._headers: list[RawHeader] = []
        self._has_head = False
        self._body = bytearray()
        self._cut = False
        self._answer: Ack | None = None
        self._reusable = False
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
        post.connection = self
        self._received = 0
        self._has_head = False
        cast(asyncio.Transport, self._transport).write(post.message)

    def overdue(self, now: float) -> bool:
        """Return True if the current post is past its deadline."""
        return self._post is not None and self._post.deadline <= now

    def give_up(self, reason: str) -> None:
        """End the current post without an answer, and the connection."""
        post, self._post = self._post, None
        self.close()
        if post is not None:
            post.fail(reason)

    def abandon(self, post: Post) -> None:
        """Close the connection if this post is on it; its callback is not called any more."""
        if self._post is post:
            self._post = None
            self.close()

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
        """Read the answer; unrequested data ends the connection.

        The answer is passed on when all of the data is read: what follows it is no answer to the next post.
        """
        self._received += len(data)
        if self._post is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._reusable = False
            if self._answer is None:
                self.give_up("its answer is no answer to a POST in HTTP/1.1")
                return
        answer = self._read_answer() if self._answer is None and self._cut else self._answer
        if answer is not None:
            self._pass_on(answer)
        elif self._received > _LONGEST_HEAD and not self._has_head:
            self.give_up("the head of its answer is too long")

    def connection_lost(self, exc: Exception | None) -> None:
        """End the post, or repeat it on another connection if allowed.

        The end of the connection is the end of a body without a length (RFC 9112, section 6.3). A server may
        close a kept-alive connection at the very moment a post goes out; it may also have died while it
        delivered the event. The two cannot be distinguished, so a call is not sent again: its tool may not
        recognise a second delivery.
        """
        if exc is None and self._ends_with_connection():
            self._pass_on(self._read_answer())
        # The parser and this refer to each other, and the collector seldom runs.
        del self._parser
        post, self._post = self._post, None
        if post is not None and self._reused and not self._received and post.repeats:
            post.repeats = False
            self._owner.lost(self, post)
            return
        self._owner.lost(self, None)
        if post is not None:
            post.fail("the connection broke before the answer was complete")

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Begin an answer, which may be an interim one (1xx), or more than was requested."""
        self._reusable = False
        self._headers = []
        self._has_head = False
        self._body.clear()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; those behind the body are ignored."""
        if not self._has_head:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Note that the head of the answer is there."""
        self._has_head = self._parser.get_status_code() >= 200

    def on_body(self, chunk: bytes) -> None:
        """Keep a part of the body, up to the limit."""
        self._body += chunk
        if len(self._body) > self._longest_body:
            del self._body[self._longest_body :]
            self._cut = True

    def on_message_complete(self) -> None:
        """Keep the answer."""
        if self._has_head and not self._cut and self._answer is None:
            self._reusable = self._parser.should_keep_alive()
            self._answer = self._read_answer()

    def _read_answer(self) -> Ack:
        return Ack(
            self._parser.get_status_code(),
            headers=tuple(self._headers),
            body=bytes(self._body),
            complete=not self._cut,
        )

    def _pass_on(self, answer: Ack) -> None:
        """Pass the answer on, and the connection back."""
        self._answer = None
        post, self._post = self._post, None
        if post is None:
            self.close()
            return
        self._reused = True
        # A receiver that answers before it has read everything may close the connection.
        if self._reusable and not cast(asyncio.Transport, self._transport).get_write_buffer_size():
            self._owner.free(self)
        else:
            self.close()
        post.then(answer)

    def _ends_with_connection(self) -> bool:
        return self._has_head and not any(name.lower() in _FRAMING for name, _ in self._headers)
