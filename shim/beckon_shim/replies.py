"""The Broker's side: routes replies, dead letters and reports of progress to calls."""

import asyncio
import logging
from collections.abc import Coroutine

from beckon_contract.cloudevents.events import EventError
from beckon_contract.cloudevents.extensions import ACCEPTED, PROGRESS_MARK, STATE
from beckon_contract.correlation import Claim
from beckon_contract.knative.reply_triggers import DEAD_LETTERS_PATH, PROGRESS_PATH, REPLIES_PATH
from beckon_runtime.http_messages import Answer, HangUp, Request, Respond, of_problem
from beckon_runtime.problem import Problem
from beckon_shim import responses
from beckon_shim.exchange import Exchange, ids_in
from beckon_shim.messages import WireEvent, read
from beckon_shim.peers import LateReplies, Peers, is_forwarded
from beckon_shim.probes import answer_probe, is_probe, is_probe_reply
from beckon_shim.receipts import RECEIPTS
from beckon_shim.reply_marks import Match, ReplyMarks
from beckon_shim.status import Status
from beckon_shim.waiters import (
    AmbiguousDeadLetters,
    WaiterState,
    is_of_observer,
    says_why,
    strip_errors,
    undeliverable,
)

_TOKEN = b"ce-" + PROGRESS_MARK.encode()
_LONGEST = 4096  # bytes of data: numbers and a sentence
_TAKEN = Answer(202, [], b"", "taken")


class Reports:
    """Takes reports of progress."""

    def __init__(
        self, exchange: Exchange, peers: Peers, late: LateReplies, ambiguous: AmbiguousDeadLetters
    ) -> None:
        self._waiters = exchange.waiters
        self._tokens = exchange.tokens
        self._metrics = exchange.metrics
        self._peers = peers
        self._late = late
        self._ambiguous = ambiguous

    def take(self, event: WireEvent, request: Request) -> Answer | Coroutine[None, None, Answer]:
        """Pass a report to the caller of its call.

        A call of another replica is reached through that replica.
        """
        claim = self._tokens.verify(event.attributes.get(_TOKEN))
        if claim is None:
            return self._taken("foreign")
        if len(event.body) > _LONGEST:
            return self._taken("too_large")
        if claim.replica != self._tokens.replica and not is_forwarded(request):
            return self._forward(claim, event)
        waiter = self._waiters.get(claim.nonce)
        if waiter is None:
            return self._hand_over(claim, event)
        self._ambiguous.note_alive(waiter)
        if waiter.hear is None:
            return self._taken("unheard")
        del event.attributes[_TOKEN]  # who has it could answer the call
        waiter.hear(event)
        return self._taken("passed")

    def too_large(self) -> None:
        """Count a report with a body over the limit."""
        self._metrics.report("too_large")

    async def _forward(self, claim: Claim, event: WireEvent) -> Answer:
        if await self._peers.forward(claim.replica, PROGRESS_PATH, event):
            return self._taken("forwarded")
        return await self._hand_over(claim, event)

    async def _hand_over(self, claim: Claim, event: WireEvent) -> Answer:
        """Pass the report of an unanswered call to the late sink."""
        if self._waiters.state(claim.nonce) is WaiterState.ANSWERED:
            return self._taken("behind")
        handed = await self._late.report(event, self._waiters.abandoned_call(claim.nonce))
        return self._taken("late" if handed else "lost")

    def _taken(self, outcome: str) -> Answer:
        self._metrics.report(outcome)
        return _TAKEN


logger = logging.getLogger(__name__)

_ACCEPTED = Answer(202, [], b"", "accepted")
_STATE, _NO_ANSWER = b"ce-" + STATE.encode(), ACCEPTED.encode()


# Most events are dealt with at once; those for elsewhere take a moment.
_NowOrLater = Answer | Coroutine[None, None, Answer]


class Replies:
    """Routes replies, dead letters and reports of progress to their calls."""

    def __init__(
        self,
        exchange: Exchange,
        status: Status,
        peers: Peers,
        late: LateReplies,
        ambiguous: AmbiguousDeadLetters,
    ) -> None:
        self._ambiguous = ambiguous
        self._receipts = exchange.receipts
        self._waiters = exchange.waiters
        self._tokens = exchange.tokens
        self._marks = exchange.marks
        self._reply_marks = ReplyMarks(exchange.tokens, exchange.marks, exchange.waiters)
        self._metrics = exchange.metrics
        self._status = status
        self._peers = peers
        self._late = late
        self._reports = Reports(exchange, peers, late, ambiguous)
        self._tasks: set[asyncio.Task[None]] = set()

    def handle(self, request: Request, respond: Respond) -> HangUp | None:
        """Take one request of the Broker."""
        if request.method == "POST" and logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s: an event of the Broker", request.path, extra=ids_in(request.headers))
        if request.path.startswith(RECEIPTS):
            return self._receipts.handle(request, respond)
        dealt = self._answer_request(request)
        if isinstance(dealt, Answer):
            respond(dealt)
        else:
            task = asyncio.get_running_loop().create_task(_respond_later(dealt, respond))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return None

    def too_large(self, request: Request, limit: int) -> Answer:
        """Refuse a reply over the limit; its caller gets an error at once."""
        if request.path == PROGRESS_PATH:
            self._reports.too_large()
            return responses.too_large(limit)
        event = _read_head(request)
        match = None if event is None else self._reply_marks.find(event)
        waiter = None if match is None else self._waiters.get(match.claim.nonce)
        if event and match and waiter and self._reply_marks.is_reply(match, event, waiter):
            self._waiters.fail(waiter, responses.reply_too_large(limit))
        self._metrics.reply("too_large")
        return responses.too_large(limit)

    def _answer_request(self, request: Request) -> _NowOrLater:
        if request.path not in (REPLIES_PATH, DEAD_LETTERS_PATH, PROGRESS_PATH):
            hint = f"POST events to {REPLIES_PATH}, {DEAD_LETTERS_PATH} or {PROGRESS_PATH}"
            return self._status.answer(request) or responses.no_such_path(hint)
        if request.method != "POST":
            return responses.wrong_method(b"POST")
        try:
            event = read(request.headers, request.body)
        except EventError as error:
            return responses.bad_event(error)
        if request.path == DEAD_LETTERS_PATH:
            return self._dead_letter(event, request)
        if request.path == PROGRESS_PATH:
            return self._reports.take(event, request)
        return self._reply(event, request)

    def _reply(self, event: WireEvent, request: Request) -> _NowOrLater:
        match = self._reply_marks.find(event)
        if match is None:
            self._metrics.reply("foreign" if self._marks.reply in event.attributes else "unmarked")
            return _ACCEPTED
        if is_probe(event):  # any replica can answer it
            self._metrics.reply("probe")
            return answer_probe(event) if request.path == REPLIES_PATH else _ACCEPTED
        if self._belongs_elsewhere(match.claim, request):
            return self._forward_reply(match, event)
        if not self._reply_marks.is_reply(match, event, self._waiters.get(match.claim.nonce)):
            self._metrics.reply("no_reply")
            return _ACCEPTED
        return self._settle(match, event)

    def _belongs_elsewhere(self, claim: Claim, request: Request) -> bool:
        """Return True if the event must go to another replica. An event makes only one hop."""
        return claim.replica != self._tokens.replica and not is_forwarded(request)

    def _settle(self, match: Match, event: WireEvent) -> _NowOrLater:
        """Answer the waiting call, or pass the reply to the late sink."""
        claim = match.claim
        accepted, waiter = _is_acceptance(event), self._waiters.get(claim.nonce)
        answer = (responses.accepted if accepted else responses.replied)(self._to_caller(match, event))
        receipt = None
        if waiter is not None and waiter.receipt is not None:
            answer.headers.append(waiter.receipt)
            receipt = self._receipts.expect(claim.nonce)
        if accepted:
            if waiter is not None:
                self._ambiguous.note_alive(waiter)
            state = self._waiters.accept(claim.nonce, answer)
        else:
            if waiter is not None:
                self._ambiguous.note_answered(waiter)
            state = self._waiters.reply(claim.nonce, answer)
        if state is WaiterState.WAITING:
            self._metrics.reply("accepted" if accepted else "answered")
            return _ACCEPTED if receipt is None else self._until_stored(receipt, match, event)
        if state is WaiterState.ANSWERED:
            self._metrics.reply("duplicate")
            return _ACCEPTED
        return self._hand_over(match, event)

    async def _until_stored(self, receipt: asyncio.Future[bool], match: Match, event: WireEvent) -> Answer:
        """Acknowledge a reply once its caller or the late sink has it."""
        if not await receipt:
            logger.info("no receipt came for the reply %s; the late reply sink gets it", event.text(b"ce-id"))
            return await self._hand_over(match, event)
        if not _is_acceptance(event):
            self._waiters.settle(match.claim.nonce)
        return _ACCEPTED

    async def _hand_over(self, match: Match, event: WireEvent) -> Answer:
        if is_probe_reply(event):  # no run waits for it
            self._metrics.reply("late")
            return _ACCEPTED
        if match.attribute != self._marks.reply:  # the sink knows no other
            event.attributes[self._marks.reply] = self._tokens.write(match.claim)
        if not await self._late.hand_over(event, self._waiters.abandoned_call(match.claim.nonce)):
            self._metrics.reply("late_refused")
            problem = Problem(
                503, "sink-busy", "Late reply not stored", "the late reply sink did not take it"
            )
            return of_problem(problem, "sink_busy", (b"retry-after", b"1"))
        if not _is_acceptance(event):
            self._waiters.settle(match.claim.nonce)
        self._metrics.reply("late")
        return _ACCEPTED

    async def _forward_reply(self, match: Match, event: WireEvent) -> Answer:
        if await self._peers.forward(match.claim.replica, REPLIES_PATH, event):
            self._metrics.reply("forwarded")
            return _ACCEPTED
        # That replica is gone, and its callers with it.
        if not self._reply_marks.is_reply(match, event, None):
            self._metrics.reply("no_reply")
            return _ACCEPTED
        return await self._hand_over(match, event)

    def _to_caller(self, match: Match, event: WireEvent) -> WireEvent:
        """Return a reply without the attributes of the token."""
        attributes = event.attributes.copy()
        for name in (self._marks.correlation, self._marks.reply, match.attribute):
            attributes.pop(name, None)
        return WireEvent(attributes, event.content_type, event.body)

    def _dead_letter(self, event: WireEvent, request: Request) -> _NowOrLater:
        attributes = event.attributes
        if self._tokens.verify(attributes.get(self._marks.reply)) is not None:
            # Not the call but its reply could not be delivered: here it is.
            strip_errors(event)
            self._metrics.dead_letter("reply")
            return self._reply(event, request)
        claim = self._tokens.verify(attributes.get(self._marks.correlation))
        if claim is None:
            self._metrics.dead_letter("foreign")
            return _ACCEPTED
        if self._belongs_elsewhere(claim, request):
            return self._forward_dead_letter(claim, event)
        waiter = self._waiters.get(claim.nonce)
        if waiter is None:
            self._metrics.dead_letter("late")
        elif attributes[b"ce-type"] != waiter.call_type or is_of_observer(event):
            # An event that a service sent with the token of the call, or a Trigger that another one's tool
            # does not need: that it is lost says nothing about the call.
            self._metrics.dead_letter("foreign")
        else:
            answer = undeliverable(event, waiter.broker_url)
            sure = says_why(event)
            if sure:
                self._waiters.fail(waiter, answer)
            else:
                self._ambiguous.doubt(waiter, answer)
            self._metrics.dead_letter("answered" if sure else "doubtful")
        return _ACCEPTED

    async def _forward_dead_letter(self, claim: Claim, event: WireEvent) -> Answer:
        answer = await self._peers.forward(claim.replica, DEAD_LETTERS_PATH, event)
        self._metrics.dead_letter("forwarded" if answer else "lost")
        return _ACCEPTED


def _read_head(request: Request) -> WireEvent | None:
    """Return the event in the headers of a request, `None` for one in structured mode."""
    try:
        return read(request.headers, b"")
    except EventError:
        return None


def _is_acceptance(event: WireEvent) -> bool:
    """Return True if a reply only announces a later answer."""
    return event.attributes.get(_STATE) == _NO_ANSWER


async def _respond_later(dealt: Coroutine[None, None, Answer], respond: Respond) -> None:
    respond(await dealt)
