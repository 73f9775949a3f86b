"""Authentication before every route, and protected resource metadata (RFC 9728).

The metadata names the issuer of tokens, for clients. The principal is known to all code that serves the
request.
"""

import re

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from beckon_agent.api.http.errors import refuse_request
from beckon_agent.api.late_replies import PATH as LATE_REPLIES
from beckon_agent.api.page import is_page
from beckon_agent.auth.authentication import Authenticator
from beckon_agent.auth.options import KeysUnavailable, Unauthenticated
from beckon_agent.core.context import EVENTS, UNAUTHENTICATED, Principal, acting_as

WELL_KNOWN = "/.well-known/oauth-protected-resource"

_HOST = re.compile(r"[A-Za-z0-9.-]{1,253}(:\d{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?")
_PATH = re.compile(r"[-._~/A-Za-z0-9]{0,300}")


class ProtectedResource:
    """The protected resource metadata of every path.

    `public_url` is the address of the service for clients. Without it, the address of the request is
    used, which a proxy in front may have changed.
    """

    def __init__(self, issuer: str, public_url: str = "") -> None:
        self._issuer = issuer
        self._public_url = public_url.rstrip("/")

    def is_metadata(self, scope: Scope) -> bool:
        """Return True if a request is for the metadata."""
        path: str = scope["path"]
        is_metadata = path == WELL_KNOWN or path.startswith(f"{WELL_KNOWN}/")
        return is_metadata and scope["method"] in ("GET", "HEAD")

    def to_response(self, scope: Scope) -> Response:
        """Return the metadata of the path behind the well-known one."""
        base, path = self._base_url(scope), scope["path"].removeprefix(WELL_KNOWN)
        if base is None or not _PATH.fullmatch(path):
            return Response(status_code=404)
        document = {
            "resource": base + path,
            "authorization_servers": [self._issuer],
            "bearer_methods_supported": ["header"],
        }
        return JSONResponse(document, headers={"cache-control": "max-age=3600", "vary": "host"})

    def challenge_parameter(self, scope: Scope) -> str:
        """Return the challenge parameter with the address of the metadata.

        It is empty if the address is not known.
        """
        base, path = self._base_url(scope), scope["path"]
        if base is None or not _PATH.fullmatch(path):
            return ""
        return f', resource_metadata="{base}{WELL_KNOWN}{path if path != "/" else ""}"'

    def _base_url(self, scope: Scope) -> str | None:
        if self._public_url:
            return self._public_url
        host = Request(scope).headers.get("host", "")
        return f"{scope['scheme']}://{host}" if _HOST.fullmatch(host) else None


OPEN_PATHS = frozenset({"/healthz", "/readyz", LATE_REPLIES})
"""Callers of these have no credential; the answers name no agents.

A late reply proves itself: who was not sent the call cannot answer it.
"""

_FROM_BROKERS = ("/events", "/feed")
_POLICY_VIOLATION = 1008  # RFC 6455, section 7.4.1


class AuthMiddleware:
    """Authenticates each request and sets its principal.

    The principal is in `current_principal()`, and in the scope's state under `principal`. With
    `open_to_brokers` events need no credential, since most Brokers send none: then anything else that
    reaches the service can send events as well, unless a network policy prevents it.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        *,
        open_to_brokers: bool = False,
        public_url: str = "",
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._open_to_brokers = open_to_brokers
        tokens = authenticator.tokens
        self._resource = None if tokens is None else ProtectedResource(tokens.issuer, public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] != "http":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        elif scope["path"] in OPEN_PATHS or is_page(scope):
            await self._serve_principal(await self._identify_or_none(scope), scope, receive, send)
        elif self._open_to_brokers and _is_from_broker(scope):
            await self._serve_principal(EVENTS, scope, receive, send)
        elif self._resource is not None and self._resource.is_metadata(scope):
            await self._resource.to_response(scope)(scope, receive, send)
        else:
            await self._serve_known(scope, receive, send)

    async def _serve_known(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        try:
            who = await self._authenticator.identify_sender(scope["headers"])
        except Unauthenticated as error:
            answer = refuse_request(path, 401, str(error))
            answer.headers["www-authenticate"] = self._write_challenge(error, scope)
            await answer(scope, receive, send)
        except KeysUnavailable as error:
            await refuse_request(path, 503, str(error))(scope, receive, send)
        else:
            await self._serve_principal(who, scope, receive, send)

    async def _serve_principal(self, who: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["principal"] = who
        with acting_as(who):
            await self._app(scope, receive, send)

    async def _identify_or_none(self, scope: Scope) -> Principal:
        try:
            return await self._authenticator.identify_sender(scope["headers"])
        except (Unauthenticated, KeysUnavailable):
            return UNAUTHENTICATED

    def _write_challenge(self, error: Unauthenticated, scope: Scope) -> str:
        """Return the `WWW-Authenticate` header of a 401 (RFC 6750, section 3).

        It has no error code if the request had no credential.
        """
        tried = ', error="invalid_token"' if error.tried else ""
        resource = "" if self._resource is None else self._resource.challenge_parameter(scope)
        return f'Bearer realm="beckon"{tried}{resource}'


def _is_from_broker(scope: Scope) -> bool:
    path: str = scope["path"]
    delivered = any(path == at or path.startswith(f"{at}/") for at in _FROM_BROKERS)
    return delivered and all(name != b"authorization" for name, _ in scope["headers"])
