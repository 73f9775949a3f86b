"""The acknowledgement of an event by a Broker, a replica or a sink."""

from dataclasses import dataclass

_TRY_LATER = frozenset((429, 503))
# After these a Broker has not taken the event: it does not know the Broker yet, or is busy (knative/specs,
# data-plane.md), or has not read the request.
_NOT_TAKEN = frozenset((404, 408, 425, 429, 503))


@dataclass(frozen=True, slots=True)
class Ack:
    """The acknowledgement of one event; `status` 0 means no answer.

    `sent` is true if the Broker may have got the event although no answer came. With `no_token` it was not
    posted at all, because no token for its Broker was available.
    """

    status: int
    error: str = ""
    retry_after: str = ""
    sent: bool = True
    no_token: bool = False

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
