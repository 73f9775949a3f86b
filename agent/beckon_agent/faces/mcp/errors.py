"""Refusals before JSON-RPC is read: HTTP answers with an error that belongs to no request."""

import orjson
from starlette.responses import Response

INVALID_REQUEST = -32600
INTERNAL_ERROR = -32603


def refused(status: int, message: str) -> Response:
    """Return the whole HTTP answer."""
    code = INTERNAL_ERROR if status >= 500 else INVALID_REQUEST
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    headers = {"retry-after": "1"} if status == 503 else None
    return Response(orjson.dumps(body), status, headers, "application/json")
