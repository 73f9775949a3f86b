"""The options and the errors of authentication.

Messages name cause and cure, and hold nothing of a credential.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from beckon_runtime.origins import is_loopback


def secure_url(url: str) -> str:
    """Return an address if it can be trusted, else raise `ValueError`.

    Trusted are https, and http on loopback.
    """
    parts = urlsplit(url)
    host = parts.hostname
    if host and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        return url
    raise ValueError(f"{url[:200]!r} must begin with https:// and a host, since keys come from there")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcOptions:
    """The issuer of the accepted tokens, and their claims.

    `ca_file` holds certificates to trust besides the public ones.
    """

    issuer: str
    audiences: tuple[str, ...]
    user_claim: str = "sub"
    groups_claim: str = "groups"
    jwks_url: str = ""
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """The options of authentication.

    `host` is the address on which the service listens. With `anonymous` unset, callers without a
    credential are accepted if the service listens on loopback and neither keys nor an issuer are set; and
    only from this machine.
    """

    host: str
    keys_file: Path | None = None
    oidc: OidcOptions | None = None
    anonymous: bool | None = None


class Unauthenticated(Exception):
    """A request without a credential, or with an invalid one. `tried` is True if it held a credential."""

    def __init__(self, message: str, *, tried: bool) -> None:
        super().__init__(message)
        self.tried = tried


class BadToken(Exception):
    """A token is not valid."""


class KeysUnavailable(Exception):
    """The issuer's keys cannot be fetched at the moment. No token can be verified until they are."""
