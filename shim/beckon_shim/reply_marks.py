"""The call that an event answers, by the token in one of its attributes.

The reply attribute of the settings decides. Services that do not know it may copy the correlation attribute
of the call, or have an attribute of their own, which the EventType names. But the call itself bears the
token, too, and so may an event that another service makes of it. A reply has another type than its call; and
where the EventType names an attribute, no other one counts.
"""

import re
from dataclasses import dataclass

from beckon_contract.cloudevents.events import RESERVED, EventError
from beckon_contract.cloudevents.extensions import PROGRESS, PROGRESS_MARK, STATE
from beckon_contract.correlation import Claim, is_of_call
from beckon_runtime.posts import RawHeader
from beckon_shim.exchange import Marks
from beckon_shim.messages import WireEvent
from beckon_shim.tokens import Tokens
from beckon_shim.waiters import Waiter, Waiters

REPLY_ATTRIBUTE = b"beckon-reply-attribute"
"""The header of a request that names the attribute by which replies of its tool name the call."""

_EXTENSION = re.compile(rb"[a-z][a-z0-9]{0,19}\Z")
_STATE, _REPORT = b"ce-" + STATE.encode(), PROGRESS.encode()
_NO_REPLY = b"ce-" + PROGRESS_MARK.encode()
_ID, _TYPE = b"ce-id", b"ce-type"


def named_attribute(headers: list[RawHeader]) -> bytes:
    """Return the header of the attribute that a request names for replies, empty without one.

    Raises `EventError` if it is no name of an extension attribute.
    """
    for header, value in headers:
        if header == REPLY_ATTRIBUTE:
            if not _EXTENSION.match(value) or value.decode() in RESERVED:
                raise EventError(f"the header '{REPLY_ATTRIBUTE.decode()}' names no extension attribute")
            return b"ce-" + value
    return b""


@dataclass(frozen=True, slots=True)
class Match:
    """The claim of a token in an event, and the header of the attribute with it."""

    claim: Claim
    attribute: bytes


class ReplyMarks:
    """Finds the call in an event, and decides whether the event is its reply."""

    def __init__(self, tokens: Tokens, marks: Marks, waiters: Waiters) -> None:
        self._tokens = tokens
        self._marks = marks
        self._waiters = waiters

    def find(self, event: WireEvent) -> Match | None:
        """Return the call in an event, `None` without a genuine token.

        The token in the reply attribute comes first, that in the correlation attribute last. In an attribute
        that the EventType names, the id of the call counts, too, at the replica where the call waits.
        """
        attributes, verify = event.attributes, self._tokens.verify
        claim = verify(attributes.get(self._marks.reply))
        if claim is not None:
            return Match(claim, self._marks.reply)
        copied: Match | None = None
        for name, value in attributes.items():
            claim = None if name == _NO_REPLY else verify(value)
            if claim is None:
                continue
            if name != self._marks.correlation:
                return Match(claim, name)
            copied = Match(claim, name)
        by_id = self._waiters.find_by_id(attributes)
        return copied if by_id is None else Match(Claim(self._tokens.replica, by_id[0]), by_id[1])

    def is_reply(self, match: Match, event: WireEvent, waiter: Waiter | None) -> bool:
        """Return True if an event with this token is the reply to the call.

        Of a call that does not wait here only the id is known; an event with that id counts as the call.
        """
        if match.attribute == self._marks.reply:
            return True
        if event.attributes.get(_STATE) == _REPORT:
            return False
        if waiter is None:
            return not is_of_call(self._tokens.keyring, match.claim, event.attributes[_ID])
        return event.attributes[_TYPE] != waiter.call_type and match.attribute == (
            waiter.reply_attribute or self._marks.correlation
        )
