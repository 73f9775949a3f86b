"""The state shared by both sides of a call.

It has the waiting calls, the tokens and their marks, the metrics and the receipts.
"""

from dataclasses import dataclass

from beckon_shim.metrics import Metrics
from beckon_shim.receipts import Receipts
from beckon_shim.tokens import Tokens
from beckon_shim.waiters import Waiters


@dataclass(frozen=True, slots=True)
class Marks:
    """The headers of the token's attributes, on call and reply."""

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
