"""What a text must be at the least to be an expression: what is known without the grammar."""

MAX_LENGTH = 4096
MAX_DEPTH = 64


class CesqlSyntaxError(ValueError):
    """A text is no CESQL expression; `position` counts its characters from 0."""

    def __init__(self, message: str, position: int = 0) -> None:
        self.position = position
        super().__init__(message)
