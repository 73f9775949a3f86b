"""Telling clients where tokens for this service come from (RFC 9728), as MCP's authorization asks for."""

import re

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Scope

WELL_KNOWN = "/.well-known/oauth-protected-resource"

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_PATH = re.compile(r"[-._~/A-Za-z0-9]{0,300}")


class ProtectedResource:
    """The metadata of every path; `public_url` is where clients reach the service.

    Without it, it is where the request came to, which a proxy in front may have changed.
    """

    def __init__(self, issuer: str, public_url: str = "") -> None:
        self._issuer = issuer
        self._public_url = public_url.rstrip("/")

    def is_asked(self, scope: Scope) -> bool:
        """Whether a request is for the metadata."""
        path: str = scope["path"]
        asked = path == WELL_KNOWN or path.startswith(f"{WELL_KNOWN}/")
        return asked and scope["method"] in ("GET", "HEAD")

    def answer(self, scope: Scope) -> Response:
        """Return the metadata of the path behind the well-known one."""
        base, path = self._base(scope), scope["path"].removeprefix(WELL_KNOWN)
        if base is None or not _PATH.fullmatch(path):
            return Response(status_code=404)
        document = {
            "resource": base + path,
            "authorization_servers": [self._issuer],
            "bearer_methods_supported": ["header"],
        }
        return JSONResponse(document, headers={"cache-control": "max-age=3600", "vary": "host"})

    def parameter(self, scope: Scope) -> str:
        """Return the parameter of a challenge that leads there; empty where the address is not known."""
        base, path = self._base(scope), scope["path"]
        if base is None or not _PATH.fullmatch(path):
            return ""
        return f', resource_metadata="{base}{WELL_KNOWN}{path if path != "/" else ""}"'

    def _base(self, scope: Scope) -> str | None:
        if self._public_url:
            return self._public_url
        host = Request(scope).headers.get("host", "")
        return f"{scope['scheme']}://{host}" if _HOST.fullmatch(host) else None
