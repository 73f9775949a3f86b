"""Who sends a request: by API key, by OIDC token, or nobody in particular where that is allowed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from beckon_agent.access.addresses import is_loopback
from beckon_agent.access.errors import BadToken, NotFromHere, NotLetIn
from beckon_agent.access.key_file import KeyFile
from beckon_agent.principals import ANONYMOUS, Principal
from beckon_contract.agent_terms import KEY_PREFIX
from beckon_contract.api_keys import MAX_KEY, PREFIX

Headers = Iterable[tuple[bytes, bytes]]


class Tokens(Protocol):
    """Checks bearer tokens."""

    @property
    def issuer(self) -> str:
        """Who issues the tokens that are taken."""
        ...

    async def verify(self, token: str) -> Principal:
        """Return whom a token proves; raise `BadToken`, or `KeysUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Tells who sends a request.

    `anonymous` lets in whoever brings no credential. With `local` only requests that were made to
    this machine by one of its names are let in so: a web page whose domain was made to point here
    (DNS rebinding), or that merely sends a request here, says where it comes from.
    """

    keys: KeyFile | None = None
    tokens: Tokens | None = None
    anonymous: bool = False
    local: bool = False

    async def identify(self, headers: Headers) -> Principal:
        """Return who sends a request; raise `NotLetIn`, `NotFromHere` or `KeysUnavailable`."""
        found = list(headers)
        credentials = [value for name, value in found if name == b"authorization"]
        closed = self.keys is not None or self.tokens is not None
        if credentials and closed:
            return await self._proved(credentials)
        if not self.anonymous:
            raise NotLetIn(self._wanted(), tried=False)
        if self.local:
            _refuse_strangers(found)
        return ANONYMOUS  # where there is nothing to check against, a key that a client must send is no claim

    async def _proved(self, credentials: list[bytes]) -> Principal:
        scheme, _, credential = credentials[0].decode("latin-1").strip().partition(" ")
        credential = credential.strip()
        if len(credentials) > 1 or scheme.lower() != "bearer" or not credential.isascii() or not credential:
            raise NotLetIn(f"the header 'authorization' cannot be used; {self._wanted()}", tried=True)
        if self.keys is not None and credential.startswith(PREFIX):
            entry = self.keys.find(credential) if len(credential) <= MAX_KEY else None
            if entry is None:
                raise NotLetIn(
                    "the API key is not valid: it is unknown, revoked, or its time is over", tried=True
                )
            return Principal(KEY_PREFIX + entry.name, entry.groups, "key")
        if self.tokens is None:
            raise NotLetIn(f"the credential is no API key; {self._wanted()}", tried=True)
        try:
            return await self.tokens.verify(credential)
        except BadToken as error:
            raise NotLetIn(f"the token is not valid: {error}", tried=True) from None

    def _wanted(self) -> str:
        known = [
            *(["an API key of `beckon keys new`"] if self.keys is not None else []),
            *(["a token of the OIDC issuer"] if self.tokens is not None else []),
        ]
        if not known:
            return "this service lets nobody in: neither API keys nor an OIDC issuer are set up"
        return f"send {' or '.join(known)} in the header 'authorization: Bearer …'"


def _refuse_strangers(headers: Headers) -> None:
    for name, value in headers:
        text = value.decode("latin-1")
        if name == b"host" and not _is_local(f"//{text}"):
            raise NotFromHere(_not_from_here("host", text))
        if name == b"origin" and not _is_local(text):
            raise NotFromHere(_not_from_here("origin", text))


def _is_local(address: str) -> bool:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def _not_from_here(header: str, value: str) -> str:
    return (
        f"without a key this service is open to this machine alone, and the header {header!r} names "
        f"{value[:100]!r}; set up API keys or OIDC, or open it with BECKON_ANONYMOUS=true"
    )
