"""Every answer carries `x-request-id`, and every unexpected error is logged under it."""

import logging
import re
import secrets
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from beckon_agent.core.context import set_request_id

logger = logging.getLogger(__name__)

_HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._:/+=-]{1,128}")  # what is safe in a header, a log line and a URL


class RequestIds:
    """Takes the caller's id where it is a sane one, and makes one where it is not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        chosen = _chosen(scope["headers"])
        set_request_id(chosen)
        whole = False

        async def stamped(message: Message) -> None:
            nonlocal whole
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (_HEADER, chosen.encode())]
            else:
                whole = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, stamped)
        except Exception:
            logger.exception("request %s: %s %r failed", chosen, scope["method"], scope["path"])
            if not whole:
                raise  # the server breaks the connection, so that nobody takes half an answer for a whole one


def _chosen(headers: Iterable[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == _HEADER and _SANE.fullmatch(value):
            return value.decode()
    return secrets.token_hex(16)
