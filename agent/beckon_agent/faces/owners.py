"""To whom what a request makes belongs."""

from starlette.requests import Request

from beckon_agent.core.context import UNAUTHENTICATED, Principal


def owner_of(request: Request) -> str:
    """Return the id of who asks, as the door noted it; empty for anonymous callers."""
    who: Principal = getattr(request.state, "principal", UNAUTHENTICATED)
    return who.id
