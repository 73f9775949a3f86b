"""Credentials in requests to MCP servers: sent as they are, or exchanged for a token by OAuth."""

from collections.abc import AsyncGenerator, Generator

import httpx2
from mcp.client.auth import OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from beckon_adapter.egress.hosts import Credential, Credentials, NoCredential, Sealed


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


class MemoryTokens:
    """A client's registration and its token, as the SDK stores them; in memory."""

    def __init__(self) -> None:
        self.client: OAuthClientInformationFull | None = None
        self.token: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """Return the token."""
        return self.token

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store the token."""
        self.token = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store the registration."""
        self.client = client_info


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
        return Sealed(secrets=tuple(filter(None, (self._secret, token)))).hide(content)

    def _make_provider(self) -> ClientCredentialsOAuthProvider:
        """Return the provider for one request. One for all would send a request after the other."""
        client_id, secret = self._entry.read_pair()
        if secret != self._secret:
            self._secret, self._tokens = secret, MemoryTokens()
        return ClientCredentialsOAuthProvider(
            self._url, self._tokens, client_id, secret, issuer=self._entry.issuer
        )


ServerAuth = SealedAuth | OAuthClientAuth
"""The credential of a server, as the HTTP client applies it."""


def make_auth(credentials: Credentials, name: str, url: str) -> ServerAuth:
    """Return the authentication by a credential; raise `NoCredential`."""
    entry = credentials.find_oauth(name, httpx2.URL(url))
    return SealedAuth(credentials, name, url) if entry is None else OAuthClientAuth(entry, url)
