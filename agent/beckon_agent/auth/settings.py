"""The settings of authentication, and the addresses that can be trusted."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from beckon_contract.origins import is_loopback


def secure_url(url: str) -> str:
    """Return an address whose answers can be trusted, https or this machine; else raise `ValueError`."""
    parts = urlsplit(url)
    host = parts.hostname
    if host and (parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))):
        return url
    raise ValueError(f"{url[:200]!r} must begin with https:// and a host, since keys come from there")


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcOptions:
    """The issuer whose tokens are taken; `ca_file` holds certificates to trust besides the public ones."""

    issuer: str
    audiences: tuple[str, ...]
    user_claim: str = "sub"
    groups_claim: str = "groups"
    leeway: float = 30.0
    jwks_url: str = ""
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessOptions:
    """Who is let in. `host` is where the service listens.

    With `anonymous` unset, callers without a credential are let in where the service listens on
    loopback and there is nothing to check a credential against; and only from this machine.
    """

    host: str
    keys_file: Path | None = None
    oidc: OidcOptions | None = None
    anonymous: bool | None = None
