"""The permissions of the adapter's owner: allowed hosts, and credentials bound to them.

A credential has a name, and is read from a file.
"""

import base64
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ConfigDict, Field, model_validator

from beckon_adapter.templates import is_token
from beckon_runtime.egress import AllowedHost, AllowedHosts, NotAllowed
from beckon_runtime.logs import point_to_log

logger = logging.getLogger(__name__)

HOSTS_SETTING = "BECKON_ADAPTER_ALLOWED_HOSTS"
CREDENTIALS_SETTING = "BECKON_ADAPTER_CREDENTIALS"

_HIDDEN = "[credential]"
_SHORTEST_HIDDEN = 4  # characters; hiding less would tear common words apart
_LARGEST = 65_536  # bytes of a file
_OAUTH = ("oauth", "login")


def allow_hosts(entries: Iterable[AllowedHost]) -> AllowedHosts:
    """Return the hosts that the adapter may call."""
    return AllowedHosts(entries, "the HTTP adapter", HOSTS_SETTING)


class NoCredential(Exception):
    """The credential of a rule is not available. The message says who must do what."""


class Credential(BaseModel):
    """One entry of the setting: where its secret is, how it is sent, and to which hosts alone.

    `file` holds a token, `user:password` for `basic`, a client's `id:secret` for `oauth`, or a person's
    sign-in for `login`; it is read again for every request, so that a Secret may change. `name` of the header
    or the parameter is `as`. Entries of one name are sent together: some APIs want a key and a token. `oauth`
    and `login` are for MCP servers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: str = Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$")
    hosts: tuple[str, ...] = Field(min_length=1)
    type: Literal["bearer", "basic", "header", "query", "oauth", "login"] = "bearer"
    parameter: str = Field("", alias="as")
    issuer: str = Field("", pattern="^(https?://.+)?$")
    file: Path

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        if self.type in ("header", "query") and not self.parameter:
            raise ValueError(
                f"a credential of type {self.type} needs as: the name of the {self.type} parameter"
            )
        if self.type == "header" and not is_token(self.parameter):
            raise ValueError(f"{self.parameter[:40]!r} is no name of a header")
        if (self.type == "oauth") != bool(self.issuer):
            raise ValueError(
                "a credential of type oauth, and no other, needs issuer: the URL of the authorization server"
            )
        for host in self.hosts:
            AllowedHost(host=host)
        return self

    def read_pair(self) -> tuple[str, str]:
        """Return the id and the secret of a client; raise `NoCredential`."""
        client_id, colon, secret = _read_secret(self).partition(":")
        if not (client_id and colon and secret):
            raise NoCredential(
                f"the file of the credential {self.name!r} is not ID:SECRET; its owner mends it"
            )
        return client_id, secret


@dataclass(frozen=True, slots=True)
class SealedCredential:
    """The headers and parameters of a credential, for one request.

    Their values and the secrets are not in the `repr`.
    """

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def hide(self, content: bytes) -> bytes:
        """Return an API's answer without the secrets. They are replaced as they are and percent-encoded."""
        for secret in self.secrets:
            for form in {secret, quote(secret, safe="")}:
                content = content.replace(form.encode(), _HIDDEN.encode())
        return content


@dataclass(frozen=True, slots=True)
class Credentials:
    """All credentials of the adapter's owner."""

    entries: Sequence[Credential] = ()

    def seal(self, name: str, url: httpx2.URL) -> SealedCredential:
        """Return the headers and parameters for a URL; raise `NoCredential`."""
        parts = [_seal_part(entry, url) for entry in self.entries if entry.name == name]
        if not parts:
            raise NoCredential(
                f"the HTTP adapter has no credential {name!r}; its owner can add it ({CREDENTIALS_SETTING})"
            )
        return _combine_parts(name, parts)

    def find_oauth(self, name: str, url: httpx2.URL) -> Credential | None:
        """Return the credential of the type oauth or login, `None` for another; raise `NoCredential`."""
        matching = [entry for entry in self.entries if entry.name == name and entry.type in _OAUTH]
        if not matching:
            return None
        if sum(entry.name == name for entry in self.entries) > 1:
            raise NoCredential(
                f"the credential {name!r} has entries beside that of the type {matching[0].type}"
            )
        _check_host(matching[0], url)
        return matching[0]


def _seal_part(entry: Credential, url: httpx2.URL) -> SealedCredential:
    if entry.type in _OAUTH:
        raise NoCredential(
            f"the credential {entry.name!r} is of the type {entry.type}, which only rules of MCP servers take"
        )
    _check_host(entry, url)
    secret = _read_secret(entry)
    if entry.type == "bearer" and secret.startswith("{"):
        raise NoCredential(f"the file of the credential {entry.name!r} is a sign-in: write type: login")
    return _seal_secret(entry, secret)


def _check_host(entry: Credential, url: httpx2.URL) -> None:
    bound = allow_hosts(AllowedHost(host=host) for host in entry.hosts)
    try:
        bound.find(url.scheme, url.host, url.port)
    except NotAllowed:
        raise NoCredential(
            f"the credential {entry.name!r} is not for {url.host}; "
            f"its owner binds it to hosts ({CREDENTIALS_SETTING})"
        ) from None


def _combine_parts(name: str, parts: Sequence[SealedCredential]) -> SealedCredential:
    headers = [pair for part in parts for pair in part.headers.items()]
    query = [pair for part in parts for pair in part.query.items()]
    if len({each.lower() for each, _ in headers}) < len(headers) or len(dict(query)) < len(query):
        raise NoCredential(
            f"the credential {name!r} would send one thing twice; its owner mends it ({CREDENTIALS_SETTING})"
        )
    return SealedCredential(
        dict(headers), dict(query), tuple(secret for part in parts for secret in part.secrets)
    )


def _read_secret(entry: Credential) -> str:
    """Return the secret of a credential; raise `NoCredential`.

    A problem with its file is logged, and not reported to the caller.
    """
    try:
        content = entry.file.read_bytes()[:_LARGEST].decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        logger.warning("the credential %s cannot be read: %s", entry.name, _error_text(entry, error))
        content = ""
    if not content or not content.isprintable():
        where = point_to_log("adapter", f"the credential {entry.name}")
        raise NoCredential(f"the credential {entry.name!r} is not there; {where}")
    return content


def _error_text(entry: Credential, error: Exception) -> str:
    return f"{entry.file}: {error.strerror}" if isinstance(error, OSError) else f"{entry.file} is not ASCII"


def _seal_secret(entry: Credential, secret: str) -> SealedCredential:
    match entry.type:
        case "bearer":
            return SealedCredential(
                headers={"authorization": f"Bearer {secret}"}, secrets=_long_secrets((secret,))
            )
        case "basic":
            encoded = base64.b64encode(secret.encode()).decode()
            password = secret.partition(":")[2]
            headers = {"authorization": f"Basic {encoded}"}
            return SealedCredential(headers=headers, secrets=_long_secrets((encoded, secret, password)))
        case "header":
            return SealedCredential(headers={entry.parameter: secret}, secrets=_long_secrets((secret,)))
        case _:
            return SealedCredential(query={entry.parameter: secret}, secrets=_long_secrets((secret,)))


def _long_secrets(secrets: Iterable[str]) -> tuple[str, ...]:
    return tuple(secret for secret in secrets if len(secret) >= _SHORTEST_HIDDEN)
