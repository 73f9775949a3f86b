"""Credentials in requests to MCP servers: sent as they are, or exchanged for a token by OAuth."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthToken

from beckon_adapter.egress.hosts import Credential, Credentials, NoCredential, SealedCredential
from beckon_adapter.mcp.tokens import MemoryTokens, SignIn

_SIGN_IN = "beckon import mcp URL --login --token-file FILE"


class SealedAuth(httpx2.Auth):
    """Adds a credential to requests to its hosts, and refuses others."""

    def __init__(self, credentials: Credentials, name: str, url: str) -> None:
        self._credentials = credentials
        self._name = name
        self._url = httpx2.URL(url)

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the credential to a request."""
        sealed = self._credentials.seal(self._name, request.url)
        request.headers.update(sealed.headers)
        request.url = request.url.copy_merge_params(sealed.query)
        yield request

    def hide(self, content: bytes) -> bytes:
        """Return a server's output without the credential."""
        return self._credentials.seal(self._name, self._url).hide(content)


class OAuthClientAuth(httpx2.Auth):
    """Gets a token with the credentials of a client (RFC 6749, section 4.4), and sends it.

    The server names its authorization server (RFC 9728), which must be the credential's issuer: the secret
    is sent to no other. The file is read for every request, so the secret may change.
    """

    def __init__(self, entry: Credential, url: str) -> None:
        self._entry = entry
        self._url = url
        self._secret = ""
        self._tokens = MemoryTokens()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token, after those that get one; raise `NoCredential`."""
        flow = self._make_provider().async_auth_flow(request)
        try:
            sent = await anext(flow)
            while True:
                answer = yield sent
                sent = await flow.asend(answer)
        except StopAsyncIteration:
            return
        except OAuthFlowError as error:
            raise NoCredential(f"no token came for the credential {self._entry.name!r}: {error}") from None
        finally:
            await flow.aclose()

    def hide(self, content: bytes) -> bytes:
        """Return a server's output without the secret and the token."""
        token = self._tokens.token.access_token if self._tokens.token else ""
        return SealedCredential(secrets=tuple(filter(None, (self._secret, token)))).hide(content)

    def _make_provider(self) -> ClientCredentialsOAuthProvider:
        """Return the provider for one request. One for all would send a request after the other."""
        client_id, secret = self._entry.read_pair()
        if secret != self._secret:
            self._secret, self._tokens = secret, MemoryTokens()
        return ClientCredentialsOAuthProvider(
            self._url, self._tokens, client_id, secret, issuer=self._entry.issuer
        )


class SignedInAuth(httpx2.Auth):
    """Sends the access token of a person's sign-in, and renews it when it ends or the server answers 401.

    Requests side by side renew it once, because each refresh may replace the refresh token. `name` is that of
    the sign-in in errors.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._lock = asyncio.Lock()
        self._secrets: tuple[str, ...] = ()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with a token, after the one that renews it; raise `NoCredential`."""
        refused = ""
        for _ in range(2):
            if self._is_over(refused):
                async with self._lock:
                    if self._is_over(refused):  # no other request has renewed it meanwhile
                        present = self._read_renewable()
                        refreshed = yield present.make_refresh_request()
                        self._renew(present, refreshed.status_code, await refreshed.aread())
            token = self._read().token
            request.headers["authorization"] = f"Bearer {token.access_token}"
            answer = yield request
            if answer.status_code != httpx2.codes.UNAUTHORIZED or not token.refresh_token:
                return
            refused = token.access_token

    def hide(self, content: bytes) -> bytes:
        """Return a server's output without the tokens."""
        return SealedCredential(secrets=self._secrets).hide(content)

    def _is_over(self, refused: str) -> bool:
        sign_in = self._read()
        return sign_in.has_expired or sign_in.token.access_token == refused

    def _read(self) -> SignIn:
        try:
            sign_in = SignIn.from_file(self._path)
        except (OSError, ValueError):
            raise NoCredential(f"the file of {self._name} is no sign-in; write it with: {_SIGN_IN}") from None
        token = sign_in.token
        self._secrets = tuple(filter(None, (token.access_token, token.refresh_token)))
        return sign_in

    def _read_renewable(self) -> SignIn:
        sign_in = self._read()
        if not sign_in.token.refresh_token:
            raise self._to_ended()
        return sign_in

    def _renew(self, present: SignIn, status: int, content: bytes) -> None:
        """Take the answer to a refresh, and write it into the file."""
        if status != httpx2.codes.OK:
            if self._read() != present:
                return  # another process has renewed it meanwhile, with the same refresh token
            raise self._to_ended()
        try:
            present.with_token(OAuthToken.model_validate_json(content)).write_to(self._path)
        except ValueError:
            raise NoCredential(f"no token came in the answer to a refresh of {self._name}") from None
        except OSError as error:
            raise NoCredential(
                f"the new token of {self._name} cannot be written to its file: {error.strerror}"
            ) from None

    def _to_ended(self) -> NoCredential:
        return NoCredential(f"{self._name} is no longer valid; sign in again with: {_SIGN_IN}")


ServerAuth = SealedAuth | OAuthClientAuth | SignedInAuth
"""The credential of a server, as the HTTP client applies it."""


def make_auth(credentials: Credentials, name: str, url: str) -> ServerAuth:
    """Return the authentication by a credential; raise `NoCredential`."""
    entry = credentials.find_oauth(name, httpx2.URL(url))
    if entry is None:
        return SealedAuth(credentials, name, url)
    if entry.type == "login":
        return SignedInAuth(entry.file, f"the credential {name!r}")
    return OAuthClientAuth(entry, url)
