"""Who sends a request: by API key, by OIDC token, or nobody in particular where that is allowed."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from beckon_agent.access.errors import BadToken, NotLetIn
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

    `anonymous` lets in callers without a credential. On loopback the server in front has refused the
    requests of web pages by then (`beckon_contract.origins`).
    """

    keys: KeyFile | None = None
    tokens: Tokens | None = None
    anonymous: bool = False

    async def identify(self, headers: Headers) -> Principal:
        """Return who sends a request; raise `NotLetIn` or `KeysUnavailable`."""
        found = list(headers)
        credentials = [value for name, value in found if name == b"authorization"]
        closed = self.keys is not None or self.tokens is not None
        if credentials and closed:
            return await self._proved(credentials)
        if not self.anonymous:
            raise NotLetIn(self._wanted(), tried=False)
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
