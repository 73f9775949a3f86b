"""The errors of the SDK; each class says who must act.

ToolError           the model: the call failed for good, the message says what to change
DeclarationError    the tool's author: the function cannot become a tool
TryAgain            the Broker: nothing is wrong with the call, deliver it again
NotSent             whoever sends an answer later: keep the ticket, and try again
UsageError          whoever typed the command: one line on standard error, exit 2
"""


class ToolError(Exception):
    """The tool cannot do what was asked; the message is for the model, and is not retried."""


class TryAgain(Exception):
    """The tool cannot run now; the call is answered so that the Broker delivers it again.

    `after` is in how many seconds at the soonest. When the Broker has given up, the message is what
    the model is told.
    """

    def __init__(self, message: str, *, after: int | None = None) -> None:
        super().__init__(message)
        self.after = after


class NotSent(Exception):
    """The Broker has not taken an answer that came later; the message says why."""


class DeclarationError(TypeError):
    """The function cannot become a tool as it is written; raised while it is declared."""


class UsageError(Exception):
    """A command that cannot be carried out as given; the message is one line with the cure."""
