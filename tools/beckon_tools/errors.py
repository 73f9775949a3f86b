"""The errors of the SDK, each with the party to act.

ToolError           the model: the call failed for good, the message says what to change
OutcomeUnknown      the model: the call may have had its effect, another one may repeat it
DeclarationError    the tool's author: the function cannot become a tool
Retry               the Broker: nothing is wrong with the call, deliver it again
NotSent             the sender of a late answer: store the ticket, and try again
UsageError          the user of the command: one line on standard error, exit 2
"""


class ToolError(Exception):
    """The call failed for good; the message is for the model. The call is not retried."""


class OutcomeUnknown(ToolError):
    """A failure of a call with unknown effect.

    The model reads `Reason.OUTCOME_UNKNOWN`, which does not invite another call.
    """


class Retry(Exception):
    """A request for another delivery: the function has had no effect.

    The Broker delivers the call again, after `after` seconds at the soonest. When the Broker gives
    up, the model reads the message. Every other exception ends the call, see `Tool.hints.idempotent`.
    """

    def __init__(self, message: str, *, after: int | None = None) -> None:
        super().__init__(message)
        self.after = after


class NotSent(Exception):
    """The Broker has not accepted a late answer; the message says why.

    `status` is the HTTP status of the Broker's response, 0 without one; `retry_after` is the number of
    seconds it named.
    """

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class DeclarationError(TypeError):
    """The function cannot become a tool as it is written; raised while it is declared."""


class UsageError(Exception):
    """An invalid command or setting; the message is one line with the cure."""
