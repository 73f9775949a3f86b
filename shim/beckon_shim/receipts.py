"""Receipts: a caller confirms the storage of a reply.

Only then the Broker's delivery ends. The Broker forgets a reply once it is acknowledged, and a caller that
dies before it has stored the reply would lose it. So a caller with a store for its runs requests a receipt
with `beckon-receipt: true`. Its answer names in the same header the path to post to once the reply is stored,
at any replica. If no receipt comes, the reply goes to the sink of late replies, as if there had been no
caller.
"""

import asyncio
import logging
from collections.abc import Coroutine

from beckon_runtime.http_messages import Answer, HangUp, Request, Respond
from beckon_runtime.posts import RawHeader
from beckon_shim import responses
from beckon_shim.peers import Peers, is_forwarded

RECEIPTS = "/receipts/"
_HEADER = b"beckon-receipt"
_WAIT_SECONDS = 3.0  # less than a replica waits for another one that it has passed a reply on to
_TAKEN = Answer(202, [], b"", "taken")

logger = logging.getLogger(__name__)


class Receipts:
    """Waits for the receipts of replies sent to callers by this replica."""

    def __init__(self, replica: str, peers: Peers, *, has_sink: bool) -> None:
        """Without a sink for late replies, no receipts are requested. There would be no other store."""
        self._replica = replica
        self._peers = peers
        self._has_sink = has_sink
        self._awaited: dict[str, asyncio.Future[bool]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def header(self, request: Request, nonce: str) -> RawHeader | None:
        """Return the header with the path for the receipt.

        It is `None` if the caller will not confirm the reply, or there is no sink.
        """
        if not self._has_sink or (_HEADER, b"true") not in request.headers:
            return None
        return _HEADER, f"{RECEIPTS}{self._replica}/{nonce}".encode()

    def expect(self, nonce: str) -> asyncio.Future[bool]:
        """Return a future for the receipt of a reply.

        Its result is True if the receipt comes in time. Call this before the reply is sent.
        """
        loop = asyncio.get_running_loop()
        awaited = self._awaited[nonce] = loop.create_future()
        loop.call_later(_WAIT_SECONDS, self._end, nonce, False)
        return awaited

    def _end(self, nonce: str, confirmed: bool) -> bool:
        """End the wait for a receipt; return False if there was none."""
        awaited = self._awaited.pop(nonce, None)
        if awaited is None or awaited.done():
            return False
        awaited.set_result(confirmed)
        return True

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Take a receipt: `POST /receipts/REPLICA/NONCE`, without a body."""
        answer = self._take(request)
        if isinstance(answer, Answer):
            respond(answer)
        else:
            task = asyncio.get_running_loop().create_task(_respond_later(answer, respond))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return None

    def _take(self, request: Request) -> Answer | Coroutine[None, None, Answer]:
        replica, _, nonce = request.path.removeprefix(RECEIPTS).partition("/")
        if request.method != "POST":
            return responses.wrong_method(b"POST")
        if replica != self._replica and not is_forwarded(request):
            return self._pass_on(replica, request.path)
        return _TAKEN if self._end(nonce, True) else responses.no_receipt()

    async def _pass_on(self, replica: str, path: str) -> Answer:
        return _TAKEN if await self._peers.pass_on(replica, path) else responses.no_receipt()


async def _respond_later(taken: Coroutine[None, None, Answer], respond: Respond) -> None:
    respond(await taken)
