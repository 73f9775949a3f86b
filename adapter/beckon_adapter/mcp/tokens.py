"""Tokens of OAuth for MCP servers: those of a client in memory, and those of a person's sign-in in a file."""

import time
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Self

import httpx2
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import BaseModel, ConfigDict, Field

_EARLY = 10.0  # seconds before its end at which a token is renewed
_LARGEST = 65_536  # bytes of a file


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


class SignIn(BaseModel):
    """A person's sign-in: the client, its tokens, and the endpoint that renews them.

    `resource` is the server's URL. `expires_at` is in seconds since the epoch, `None` if it is unknown. The
    secrets are not in the `repr`, and not in errors.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    resource: str
    token_endpoint: str
    client: OAuthClientInformationFull = Field(repr=False)
    token: OAuthToken = Field(repr=False)
    expires_at: float | None = None

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Return the sign-in in a file; raises `OSError`, and `ValueError` for any other content."""
        with path.open("rb") as file:
            return cls.model_validate_json(file.read(_LARGEST))

    def write_to(self, path: Path) -> None:
        """Replace the file by one that its owner alone may read; raises `OSError`."""
        with NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}-", delete=False) as file:
            file.write(self.model_dump_json(exclude_none=True).encode())
        Path(file.name).replace(path)

    @property
    def has_expired(self) -> bool:
        """True if the access token is at its end."""
        return self.expires_at is not None and time.time() > self.expires_at - _EARLY

    def with_token(self, token: OAuthToken) -> Self:
        """Return this sign-in with a new token; what the new one leaves out stays as it is."""
        present = self.token.model_dump(include={"refresh_token", "scope"})
        members = token.model_dump(exclude_none=True)
        return self.model_copy(
            update={
                "token": OAuthToken.model_validate({**present, **members}),
                "expires_at": None if token.expires_in is None else time.time() + token.expires_in,
            }
        )

    def make_refresh_request(self) -> httpx2.Request:
        """Return the request for the next token (RFC 6749, section 6)."""
        context = OAuthContext(
            self.resource,
            OAuthClientMetadata(redirect_uris=self.client.redirect_uris),
            MemoryTokens(),
            redirect_handler=None,
            callback_handler=None,
            client_info=self.client,
        )
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self.token.refresh_token or "",
            "client_id": self.client.client_id or "",
            "resource": self.resource,
        }
        form, headers = context.prepare_token_auth(form, {"accept": "application/json"})
        return httpx2.Request("POST", self.token_endpoint, data=form, headers=headers)
