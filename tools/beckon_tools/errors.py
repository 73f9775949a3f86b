"""The errors of the SDK; each class says who must act.

ToolError           the model: the call failed for good, the message says what to change
DeclarationError    the tool's author: the function cannot become a tool
NotSent             whoever sends an answer later: keep the ticket, and try again
UsageError          whoever typed the command: one line on standard error, exit 2
"""


class ToolError(Exception):
    """The tool cannot do what was asked; the message is for the model, and is not retried."""


class NotSent(Exception):
    """The Broker has not taken an answer that came later; the message says why."""


class DeclarationError(TypeError):
    """The function cannot become a tool as it is written; raised while it is declared."""


class UsageError(Exception):
    """A command that cannot be carried out as given; the message is one line with the cure."""
