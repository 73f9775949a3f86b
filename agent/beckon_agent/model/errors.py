"""What can go wrong with a model, by who must act.

    ModelError
    ├── ModelUnavailable        nobody: it may work later (429, 5xx, connection, time-out)
    ├── StreamBroken            the user: the answer broke off after its beginning was shown
    ├── ModelAuthError          the operator: key, permission, quota or account
    └── ModelRefused            the caller: this request will never do (other 4xx)
        ├── ToolsNotSupported   the agent: speak a dialect instead of native tool calls
        ├── SchemaRejected      the agent: lower the declarations further, then as above
        ├── ContextTooLong      the agent: shorten the conversation
        └── ContentNotSupported the user: this model takes no such image, sound or file

No message holds the API key, also where a server repeats it.
"""

from typing import ClassVar


class ModelError(Exception):
    """The model gave no answer. `status` is the HTTP status, or what the error said it was.

    `code` is the server's word for it; `ours` is the same in each face's error, whichever server it was.
    """

    ours: ClassVar[str] = ""

    def __init__(self, message: str, *, status: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code


class ModelUnavailable(ModelError):
    """No answer now; the client has already tried again. `retry_after` is in seconds."""

    retry_after: float | None = None


class StreamBroken(ModelError):
    """The answer broke off after its beginning was shown; its cause is `__cause__`."""


class ModelAuthError(ModelError):
    """The server does not accept the key, or the account behind it."""


class ModelRefused(ModelError):
    """The server understood the request and will not do it; its own words are in the message."""


class ToolsNotSupported(ModelRefused):
    """The server or the model has no native tool calling."""


class SchemaRejected(ModelRefused):
    """The server cannot work with the JSON Schema of a declared tool."""


class ContextTooLong(ModelRefused):
    """The conversation has more tokens than the model takes."""

    ours = "context_length_exceeded"


class ContentNotSupported(ModelRefused):
    """The model takes no images, no sound or no files."""

    ours = "unsupported_content"
