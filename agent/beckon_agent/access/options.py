"""Who is let in, as the settings say it."""

from dataclasses import dataclass
from pathlib import Path


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
