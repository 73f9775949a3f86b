"""Posts to Brokers, with a token if they require one (OIDC)."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from beckon_shim.bearers import Bearers, NoToken
from beckon_shim.brokers import Target
from beckon_shim.client import Client
from beckon_shim.messages import Ack, RawHeader


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

    def __init__(self, client: Client, bearers: Bearers) -> None:
        self._client = client
        self._bearers = bearers
        self._without_token: set[asyncio.Task[None]] = set()

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
        token = self._bearers.at_hand(target.audience)
        if token is None:
            self._later(self._fetch_and_post(post))
        else:
            self._post_with(token, post)

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
