"""Delivery of a call to its Broker, and never twice without need.

A post has a token if the Broker requires one (OIDC). An event that the Broker has not taken is posted again
with back-off until the call's deadline: after a refused connection, 404 while the Broker is loaded, 429, 503.
After any other 5xx, a time-out or a lost connection the Broker may have the event: then the call waits for
its reply, and is posted again only if its caller says that a second delivery does no harm, or as long as the
Broker stores a call once.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from beckon_contract.retry_after import read_retry_after
from beckon_runtime.http_messages import Answer
from beckon_runtime.post_client import PostClient
from beckon_runtime.posts import Ack, RawHeader, Target
from beckon_shim import responses
from beckon_shim.bearers import Bearers, NoToken
from beckon_shim.waiters import Waiter, Waiters


@dataclass(slots=True)
class _Authorised:
    """A post with a token; `again` is set after one refusal."""

    target: Target
    headers: list[RawHeader]
    body: bytes
    then: Callable[[Ack], None]
    begin: Callable[[], bool] | None = None
    again: bool = False


class BrokerPosts:
    """Posts events to Brokers; each post ends in one call of its callback."""

    def __init__(self, client: PostClient, bearers: Bearers) -> None:
        self._client = client
        self._bearers = bearers
        self._without_token: set[asyncio.Task[None]] = set()
        self._deduplication: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many posts have no acknowledgement yet."""
        return len(self._client) + len(self._without_token)

    def post(
        self,
        target: Target,
        headers: list[RawHeader],
        body: bytes,
        then: Callable[[Ack], None],
        begin: Callable[[], bool] | None = None,
    ) -> None:
        """Post an event; `then` gets the acknowledgement, never before this returns.

        `begin` is called when the event goes out, which may be later, and withdraws it by returning false.
        """
        if not target.audience:
            self._client.post(target, headers, body, then, begin)
            return
        post = _Authorised(target, headers, body, then, begin)
        token = self._bearers.cached_token(target.audience)
        if token is None:
            self._later(self._fetch_and_post(post))
        else:
            self._post_with(token, post)

    def note_deduplication(self, target: Target, seconds: int) -> None:
        """Remember for how many seconds a Broker knows a call that it has; the latest word counts."""
        if seconds:
            self._deduplication[target.url] = seconds
        else:
            self._deduplication.pop(target.url, None)

    def deduplication(self, target: Target) -> int:
        """Return for how many seconds a Broker knows a call that it has, 0 if it does not."""
        return self._deduplication.get(target.url, 0)

    async def close(self) -> None:
        """Cancel the posts waiting for a token, and close every connection."""
        for task in self._without_token:
            task.cancel()
        await self._client.close()

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._without_token.add(task)
        task.add_done_callback(self._without_token.discard)

    async def _fetch_and_post(self, post: _Authorised) -> None:
        try:
            token = await self._bearers.fetch(post.target.audience)
        except NoToken as error:
            post.then(Ack(0, str(error), sent=False, no_token=True))
        else:
            self._post_with(token, post)

    def _post_with(self, token: bytes, post: _Authorised) -> None:
        def acknowledged(ack: Ack) -> None:
            # Refused is not taken: it may be posted again, once, with a fresh token.
            if ack.status == 401 and not post.again and self._bearers.drop(post.target.audience, token):
                post.again = True
                self._later(self._fetch_and_post(post))
            else:
                post.then(ack)

        bearer = (b"authorization", b"Bearer " + token)
        self._client.post(post.target, [*post.headers, bearer], post.body, acknowledged, post.begin)


IDEMPOTENT = b"beckon-idempotent"
"""The header of a request whose event may be delivered twice without harm; its value is `true`."""

_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 3.0


@dataclass(slots=True)
class Delivery:
    """Posts the event of one waiting call; `deadline` is in the loop's time.

    It ends with the waiter, or once the Broker has the event.
    """

    waiters: Waiters
    posts: BrokerPosts
    waiter: Waiter
    target: Target
    headers: list[RawHeader]
    body: bytes
    deadline: float
    repeatable: bool
    tries: int = 0
    first: float | None = None

    def post(self) -> None:
        """Post the event now."""
        self.tries += 1
        self.posts.post(self.target, self.headers, self.body, self._acknowledge, self._begin)

    def _waits(self) -> bool:
        return self.waiters.get(self.waiter.nonce) is self.waiter

    def _begin(self) -> bool:
        """Begin to send; return False if the caller was answered meanwhile."""
        if not self._waits():
            return False
        if self.first is None:
            self.first = asyncio.get_running_loop().time()
        self.waiter.refusal = None
        return True

    def _acknowledge(self, ack: Ack) -> None:
        waiter = self.waiter
        if ack.accepted:
            self.posts.note_deduplication(self.target, ack.deduplication)
        if not self._waits():
            return
        if ack.accepted:
            waiter.uncertain = None
        elif ack.doubtful:
            waiter.uncertain = ack
            self._repeat(ack)
        elif waiter.uncertain is not None:  # an earlier post may have arrived, whatever became of this one
            if ack.not_taken:
                self._repeat(ack)
        else:
            waiter.refusal = ack
            if not (ack.not_taken and self._post_later(ack, self.deadline)):
                self.waiters.fail(waiter, responses.unaccepted(ack, self.target.url))

    def _repeat(self, ack: Ack) -> None:
        """Post again an event that the Broker may have, if a second post does no harm."""
        if self.repeatable:
            self._post_later(ack, self.deadline)
        elif self.first is not None:
            self._post_later(ack, min(self.deadline, self.first + self.posts.deduplication(self.target)))

    def _post_later(self, ack: Ack, end: float) -> bool:
        """Post again after a pause; return False if that would be after the end, in the loop's time."""
        # Half of it by chance: callers that were refused at one moment should not come back at one.
        pause = min(_FIRST_PAUSE * 2 ** min(self.tries - 1, 8), _LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311  # chance, not a secret
        wanted_pause = read_retry_after(ack.retry_after) or 0.0
        if wanted_pause > pause:
            pause = wanted_pause * random.uniform(1, 1.1)  # noqa: S311  # chance, not a secret
        loop = asyncio.get_running_loop()
        if loop.time() + pause >= end:
            return False
        self.waiter.again = loop.call_later(pause, self.post)
        return True


def at_deadline(waiter: Waiter, seconds: float) -> Answer:
    """Return the answer to a call at its deadline, after `seconds`."""
    if waiter.doubt is not None:
        return waiter.doubt
    if waiter.uncertain is not None:
        return responses.outcome_unknown(waiter.uncertain, waiter.broker_url, seconds)
    if waiter.refusal is not None:
        return responses.unaccepted(waiter.refusal, waiter.broker_url)
    return responses.timed_out(seconds)


def at_shutdown(waiter: Waiter) -> Answer:
    """Return the answer to a call still waiting at shutdown."""
    if waiter.refusal is not None and waiter.uncertain is None:
        return responses.draining()
    return waiter.doubt or responses.cut_off()
