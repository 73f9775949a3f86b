"""A person's sign-in to an MCP server, in a browser.

It is OAuth's authorization code with PKCE, as MCP has it: the server names its authorization server (RFC
9728), where this program registers itself (RFC 7591) unless it has a client id already. The browser returns
to a port of this machine (RFC 8252, section 7.3).
"""

import asyncio
import sys
import threading
import time
import webbrowser
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urljoin, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from beckon_adapter.mcp.tokens import MemoryTokens, SignIn

SIGN_IN_SECONDS = 300.0
_PATH = "/callback"
_DONE = b"<!doctype html><title>Beckon</title><p>Beckon has the answer. You can close this page."


class SignInFailed(Exception):
    """The person was not signed in; the message has the cause."""


class BrowserSignIn:
    """Signs a person in when the server answers 401. Use it as a context manager, around the requests."""

    def __init__(self, server_url: str, client_id: str = "") -> None:
        self._callback = _CallbackServer()
        redirect = AnyUrl(f"http://127.0.0.1:{self._callback.server_port}{_PATH}")
        metadata = OAuthClientMetadata(redirect_uris=[redirect], client_name="Beckon")
        self._tokens = MemoryTokens()
        if client_id:
            self._tokens.client = OAuthClientInformationFull(client_id=client_id, redirect_uris=[redirect])
        self.auth = OAuthClientProvider(server_url, metadata, self._tokens, _open_browser, self._wait)

    def __enter__(self) -> "BrowserSignIn":
        return self

    def __exit__(self, *_: object) -> None:
        self._callback.server_close()

    def result(self) -> SignIn | None:
        """Return the sign-in after the requests; `None` if the server required none."""
        token, client, context = self._tokens.token, self._tokens.client, self.auth.context
        if token is None or client is None:
            return None
        metadata = context.oauth_metadata
        base = context.get_authorization_base_url(context.server_url)
        endpoint = str(metadata.token_endpoint) if metadata else urljoin(base, "/token")
        sign_in = SignIn(
            resource=context.get_resource_url(), token_endpoint=endpoint, client=client, token=token
        )
        return sign_in.with_token(token)

    async def _wait(self) -> AuthorizationCodeResult:
        return await asyncio.to_thread(self._callback.wait_for_code)


async def _open_browser(url: str) -> None:
    print(f"Sign in at {url}", file=sys.stderr)
    # A browser in this terminal ends after the sign-in only.
    threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()


class _CallbackServer(HTTPServer):
    """Receives the browser's return from the authorization server."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _CallbackHandler)
        self.timeout = 1.0
        self.received: dict[str, str] | None = None

    def wait_for_code(self) -> AuthorizationCodeResult:
        """Return what came back; raise `SignInFailed` for a refusal, and without a return."""
        end = time.monotonic() + SIGN_IN_SECONDS
        while self.received is None:
            if time.monotonic() > end:
                raise SignInFailed(f"the browser did not return within {SIGN_IN_SECONDS:g} seconds")
            self.handle_request()
        received = self.received
        if "code" not in received:
            cause = received.get("error_description") or received.get("error") or "no code came back"
            raise SignInFailed(f"the authorization server refused the sign-in: {cause[:300]}")
        return AuthorizationCodeResult(
            code=received["code"], state=received.get("state"), iss=received.get("iss")
        )


class _CallbackHandler(BaseHTTPRequestHandler):
    server: _CallbackServer
    timeout = 5

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path != _PATH:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(_DONE)))
        self.end_headers()
        self.wfile.write(_DONE)
        self.server.received = {name: values[0] for name, values in parse_qs(place.query).items()}

    def log_message(self, *_: object) -> None:
        """Log nothing: the address contains the code."""
