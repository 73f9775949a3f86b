"""An MCP server that requires a token, and the authorization server that issues it, in one application."""

import base64
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.adapter.mcp_tools import server

CLIENT_ID, SECRET = "adapter-1", "s3cret-of-the-adapter"


class OAuthServer:
    """Serves `/mcp` for valid tokens; people are signed in without a question, unless they are `refused`.

    A person's token has a refresh token, which is valid once.
    """

    def __init__(self) -> None:
        self.tokens: set[str] = set()
        self.refresh_tokens: set[str] = set()
        self.lifetime = 3600
        self.before_refresh: Callable[[], None] = lambda: None
        self.grants: list[dict[str, str]] = []
        self.registered: list[dict[str, Any]] = []
        self.refused = False
        self.most_at_once = 0
        self.issuer = ""
        self._challenges: dict[str, str] = {}
        mcp = server.streamable_http_app(json_response=True)

        @asynccontextmanager
        async def run_sessions(_: Starlette) -> AsyncIterator[None]:
            async with mcp.router.lifespan_context(mcp):
                yield

        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-protected-resource/mcp", self._describe_resource),
                Route("/.well-known/oauth-authorization-server", self._describe_issuer),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._issue_token, methods=["POST"]),
                Route("/mcp", _Guarded(self, mcp)),
            ],
            lifespan=run_sessions,
        )

    def _base(self, request: Request) -> str:
        return str(request.base_url).rstrip("/")

    async def _describe_resource(self, request: Request) -> JSONResponse:
        base = self._base(request)
        return JSONResponse({"resource": f"{base}/mcp", "authorization_servers": [self.issuer or base]})

    async def _describe_issuer(self, request: Request) -> JSONResponse:
        base = self._base(request)
        places = {
            f"{name}_endpoint": f"{base}/{path}"
            for name, path in (
                ("authorization", "authorize"),
                ("token", "token"),
                ("registration", "register"),
            )
        }
        methods = {
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        }
        return JSONResponse({"issuer": base, **places, **methods})

    async def _register(self, request: Request) -> JSONResponse:
        client = await request.json()
        self.registered.append(client)
        return JSONResponse(
            {**client, "client_id": "registered", "token_endpoint_auth_method": "none"}, status_code=201
        )

    async def _authorize(self, request: Request) -> RedirectResponse:
        query = request.query_params
        code = secrets.token_hex(8)
        self._challenges[code] = query["code_challenge"]
        found = {"error": "access_denied"} if self.refused else {"code": code}
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode({**found, 'state': query['state']})}")

    async def _issue_token(self, request: Request) -> JSONResponse:
        form = dict(parse_qsl((await request.body()).decode()))
        self.grants.append(form)
        if form["grant_type"] == "client_credentials":
            basic = base64.b64encode(f"{CLIENT_ID}:{SECRET}".encode()).decode()
            valid = request.headers.get("authorization") == f"Basic {basic}"
        elif form["grant_type"] == "refresh_token":
            self.before_refresh()
            valid = form["refresh_token"] in self.refresh_tokens
            self.refresh_tokens.discard(form["refresh_token"])  # each is valid once
        else:
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            valid = self._challenges.pop(form["code"]) == challenge
        if not valid:
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        token = f"token-{secrets.token_hex(8)}"
        self.tokens.add(token)
        answer = {"access_token": token, "token_type": "Bearer", "expires_in": self.lifetime}
        if form["grant_type"] != "client_credentials":
            refresh_token = f"refresh-{secrets.token_hex(8)}"
            self.refresh_tokens.add(refresh_token)
            answer["refresh_token"] = refresh_token
        return JSONResponse(answer)


class _Guarded:
    """Answers 401 to requests without a token, as RFC 9728 has it."""

    def __init__(self, oauth: OAuthServer, app: ASGIApp) -> None:
        self._oauth = oauth
        self._app = app
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if request.headers.get("authorization", "").removeprefix("Bearer ") in self._oauth.tokens:
            self._open += 1
            self._oauth.most_at_once = max(self._oauth.most_at_once, self._open)
            try:
                await self._app(scope, receive, send)
            finally:
                self._open -= 1
            return
        place = f"{request.base_url}.well-known/oauth-protected-resource/mcp"
        challenge = {"www-authenticate": f'Bearer resource_metadata="{place}"'}
        await Response(status_code=401, headers=challenge)(scope, receive, send)
