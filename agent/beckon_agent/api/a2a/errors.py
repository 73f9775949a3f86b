"""Errors of A2A, with their codes in both bindings.

The SDK writes the shapes of the errors; two kinds that it does not know are added to its tables.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from a2a.server.jsonrpc_models import JSONRPCError
from a2a.server.request_handlers.response_helpers import EXCEPTION_MAP
from a2a.utils.errors import (
    A2A_ERROR_MAPPING,
    JSON_RPC_ERROR_CODE_MAP,
    A2AError,
    ContentTypeNotSupportedError,
    ErrorMapping,
    InternalError,
    InvalidParamsError,
)

from beckon_agent.api.a2a.calls import A2aCall
from beckon_agent.api.http.errors import ApiError, to_api_error


class QuotaReached(A2AError):
    """A limit on requests or tokens has no room."""


class NotAvailable(A2AError):
    """Nothing can begin now, or the store does not answer."""


# JSON-RPC leaves -32000 to -32099 to servers; A2A uses them from -32001 on.
JSON_RPC_ERROR_CODE_MAP.update({QuotaReached: -32029, NotAvailable: -32053})
EXCEPTION_MAP.update({QuotaReached: JSONRPCError, NotAvailable: JSONRPCError})
A2A_ERROR_MAPPING.update(
    {
        QuotaReached: ErrorMapping(429, "RESOURCE_EXHAUSTED", "RATE_LIMIT_EXCEEDED"),
        NotAvailable: ErrorMapping(503, "UNAVAILABLE", "UNAVAILABLE"),
    }
)

_MOST_FIELDS = 5
_KINDS: dict[int, type[A2AError]] = {429: QuotaReached, 503: NotAvailable}


@contextmanager
def protocol_errors(call: A2aCall) -> Iterator[None]:
    """Turn every error of a call into one of the protocol.

    429 and 503 are the status of the HTTP answer as well, with `Retry-After`.
    """
    try:
        yield
    except A2AError as error:
        raise _name_fields(error) from error
    except Exception as error:
        known = to_api_error(error)
        if known.status in _KINDS:
            call.status, call.retry_after = known.status, known.retry_after
        raise _to_protocol_error(known) from error


def _name_fields(error: A2AError) -> A2AError:
    """Return an error whose message names the invalid fields, which the SDK writes into its data alone."""
    fields = (error.data or {}).get("errors") if isinstance(error, InvalidParamsError) else None
    if not fields:
        return error
    message = "; ".join(f"{one['field']}: {one['message']}" for one in fields[:_MOST_FIELDS])
    return InvalidParamsError(message, error.data)


def _to_protocol_error(error: ApiError) -> A2AError:
    if error.status in _KINDS:
        return _KINDS[error.status](error.message)
    if error.code in ("unsupported_value", "unsupported_content"):
        return ContentTypeNotSupportedError(error.message)
    return InvalidParamsError(error.message) if error.status < 500 else InternalError(error.message)
