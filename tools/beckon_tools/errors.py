"""The errors of the SDK; each class says who must act.

ToolError           the model: the call failed for good, the message says what to change
OutcomeUnknown      the model: the call may have had its effect, another one may repeat it
DeclarationError    the tool's author: the function cannot become a tool
Retry               the Broker: nothing is wrong with the call, deliver it again
NotSent             whoever sends an answer later: keep the ticket, and try again
UsageError          whoever typed the command: one line on standard error, exit 2
"""


class ToolError(Exception):
    """The tool cannot do what was asked; the message is for the model, and is not retried."""


class OutcomeUnknown(ToolError):
    """A failure after which it is unknown whether the call had its effect.

    The model reads the reason `outcome_unknown`, which does not invite another call.
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
    """The Broker has not taken an answer that came later; the message says why.

    `status` is what the Broker answered, 0 where it did not; `retry_after` the seconds that it named.
    """

    def __init__(self, message: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after = retry_after


class DeclarationError(TypeError):
    """The function cannot become a tool as it is written; raised while it is declared."""


class UsageError(Exception):
    """A command that cannot be carried out as given; the message is one line with the cure."""
