"""What a Broker, a replica or a sink said to an event: whether it took it."""

from dataclasses import dataclass

_TRY_LATER = frozenset((429, 503))
# After these a Broker has not taken the event: it does not know the Broker yet, or is busy (knative/specs,
# data-plane.md), or has not read the request.
_NOT_TAKEN = frozenset((404, 408, 425, 429, 503))


@dataclass(frozen=True, slots=True)
class Ack:
    """The acknowledgement of one event; `status` 0 means that none came.

    `sent` tells whether the Broker may have got the event although no answer came, `no_token`
    that it was not posted at all, since a token for its Broker could not be had.
    """

    status: int
    error: str = ""
    retry_after: str = ""
    sent: bool = True
    no_token: bool = False

    @property
    def accepted(self) -> bool:
        """Whether the Broker took the event."""
        return 200 <= self.status < 300

    @property
    def doubtful(self) -> bool:
        """Whether the event may be on its way although the acknowledgement failed.

        A Broker that delivers before it answers says 5xx when any Trigger failed, also
        one that has nothing to do with this call; and a proxy may lose patience first.
        """
        return (self.status >= 500 and self.status not in _NOT_TAKEN) or (self.status == 0 and self.sent)

    @property
    def not_taken(self) -> bool:
        """Whether the Broker does not have the event, and may take it at another try."""
        return self.status in _NOT_TAKEN or (self.status == 0 and not self.sent and not self.no_token)

    @property
    def try_later(self) -> bool:
        """Whether the Broker said that it is busy, not that the event is wrong."""
        return self.status in _TRY_LATER

    def describe(self) -> str:
        """Say in a few words what the Broker answered."""
        return f"HTTP status {self.status}" if self.status else self.error
