"""The limits and the syntax error of expressions.

They are known without loading the grammar.
"""

MAX_LENGTH = 4096
MAX_DEPTH = 64


class CesqlSyntaxError(ValueError):
    """A text is no CESQL expression; `position` counts its characters from 0."""

    def __init__(self, message: str, position: int = 0) -> None:
        self.position = position
        super().__init__(message)
