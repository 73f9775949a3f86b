"""Errors of MCP servers, as exceptions of outgoing requests."""

import contextlib
from collections.abc import Callable, Iterator

import httpx2
from anyio import BrokenResourceError, ClosedResourceError
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

from beckon_adapter.outbound.credentials import NoCredential
from beckon_adapter.outbound.egress import TooLarge, Unreachable
from beckon_adapter.outbound.hosts import NotAllowed
from beckon_tools.errors import ToolError

LOST = (OSError, httpx2.HTTPError, ClosedResourceError, BrokenResourceError)
_OURS = (NotAllowed, NoCredential, TooLarge)


@contextlib.contextmanager
def convert_errors(sent: Callable[[], bool]) -> Iterator[None]:
    """Convert the errors of a call to those of outgoing requests.

    Connections raise groups of errors. `sent` returns True once the server may have received the call.
    """
    try:
        yield
    except TimeoutError:
        raise Unreachable("did not answer in time", sent=sent()) from None
    except Exception as error:
        raise _meaning(error, sent=sent()) from None


def is_lost(error: Exception) -> bool:
    """Return True if an error means a lost connection, not an answer."""
    return error.code == CONNECTION_CLOSED if isinstance(error, MCPError) else isinstance(error, LOST)


def first(error: BaseException) -> str:
    """Return the type and message of an error, or of a group's first."""
    one = next(leaves(error))
    return f"{type(one).__name__}: {one}"


def _meaning(error: Exception, *, sent: bool) -> Exception:
    found = list(leaves(error))
    for one in found:
        if isinstance(one, (*_OURS, Unreachable)):
            return one
    for one in found:
        if isinstance(one, MCPError) and one.code not in (CONNECTION_CLOSED, REQUEST_TIMEOUT):
            return ToolError(f"the MCP server answered: {one.message[:300]} ({one.code})")
    if any(isinstance(one, (MCPError, *LOST)) for one in found):
        return Unreachable(f"is lost ({type(found[0]).__name__})", sent=sent)
    return error


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, or each error of a group, nested groups included."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
