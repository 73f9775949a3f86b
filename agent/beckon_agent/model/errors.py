"""What can go wrong with a model, by who must act.

    ModelError
    ├── ModelUnavailable        nobody: it may work later (429, 5xx, connection, time-out)
    ├── StreamBroken            the user: the answer broke off after its beginning was shown
    ├── ModelAuthError          the operator: key, permission, quota or account
    └── ModelRefused            the caller: this request will never do (other 4xx)
        ├── ToolsNotSupported   the agent: speak a dialect instead of native tool calls
        ├── SchemaRejected      the agent: lower the declarations further, then as above
        └── ContextTooLong      the agent: shorten the conversation

No message holds the API key, also where a server repeats it.
"""


class ModelError(Exception):
    """The model gave no answer. `status` is the HTTP status, or what the error said it was."""

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
