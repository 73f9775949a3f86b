"""The error to end a command: one line and an exit status."""


class CommandError(Exception):
    """One line on standard error: the cause and the remedy. `status` is 2 for wrong use, 1 for a failure."""

    def __init__(self, message: str, *, status: int = 1) -> None:
        super().__init__(message)
        self.status = status
