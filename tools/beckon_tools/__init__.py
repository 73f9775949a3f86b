"""The SDK for tools as Python functions, and the shipped tools.

    from typing import Annotated
    from beckon_tools import ToolError, serve, tool

    @tool(type="order.status", description="Tell where an order is.")
    def order_status(number: Annotated[int, "The order number"]) -> dict[str, str]:
        if number not in ORDERS:
            raise ToolError(f"there is no order {number}")
        return {"status": ORDERS[number]}

    serve(order_status)

It exports only what a tool's author needs: the decorator, the errors for the model and the Broker, media
results, progress, late answers, forms for a person, and both kinds of serving. Settings, manifests and the
command line stay in their modules.
"""

from beckon_tools.answers import Later, Media, Ticket
from beckon_tools.app import app
from beckon_tools.declaration import Hints, Tool, tool
from beckon_tools.errors import DeclarationError, NotSent, OutcomeUnknown, Retry, ToolError
from beckon_tools.outbox import flush_outbox
from beckon_tools.outcomes.record import AsyncCallRecord, CallRecord
from beckon_tools.person import Declined, Person
from beckon_tools.progress import Progress
from beckon_tools.server import serve

__all__ = [
    "AsyncCallRecord",
    "CallRecord",
    "DeclarationError",
    "Declined",
    "Hints",
    "Later",
    "Media",
    "NotSent",
    "OutcomeUnknown",
    "Person",
    "Progress",
    "Retry",
    "Ticket",
    "Tool",
    "ToolError",
    "app",
    "flush_outbox",
    "serve",
    "tool",
]
