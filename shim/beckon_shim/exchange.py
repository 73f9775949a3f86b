"""What the two sides of a call share: who waits, the tokens, and how they are marked."""

from dataclasses import dataclass

from beckon_shim.metrics import Metrics
from beckon_shim.receipts import Receipts
from beckon_shim.tokens import Tokens
from beckon_shim.waiters import Waiters


@dataclass(frozen=True, slots=True)
class Marks:
    """The headers of the attributes that carry the token, on the call and on the reply."""

    correlation: bytes
    reply: bytes

    @classmethod
    def of(cls, correlation: str, reply: str) -> "Marks":
        """Return the headers of these attributes."""
        return cls(b"ce-" + correlation.encode(), b"ce-" + reply.encode())


@dataclass(frozen=True, slots=True)
class Exchange:
    """The state between calls and replies."""

    waiters: Waiters
    tokens: Tokens
    marks: Marks
    metrics: Metrics
    receipts: Receipts
