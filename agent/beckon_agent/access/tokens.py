"""OIDC bearer tokens: who they say that asks, once they have proved it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt

from beckon_agent.access.errors import BadToken
from beckon_agent.access.key_set import KeySet
from beckon_agent.principals import Principal
from beckon_contract.agent_terms import OIDC_PREFIX

# None with a shared secret: a public key that passes for one would let anybody sign (RFC 8725, 3.1).
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
MAX_TOKEN = 16 * 1024  # characters
_MAX_USER = 255  # characters; OpenID Connect Core 1.0, section 2, of `sub`

_TOLD: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "its time is over; fetch a new one",
    jwt.ImmatureSignatureError: "it is not valid yet; check the clocks",
    jwt.InvalidAudienceError: "it is meant for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidSignatureError: "its signature does not fit",
    jwt.InvalidAlgorithmError: "it is not signed as its key has to be used",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a token must say. `leeway` are the seconds by which clocks may differ.

    A claim is found by its whole name, or by a path with dots, such as `realm_access.roles`.
    """

    issuer: str
    audiences: Sequence[str]
    user_claim: str = "sub"
    groups_claim: str = "groups"
    leeway: float = 30.0


class TokenVerifier:
    """Checks tokens of one issuer."""

    def __init__(self, keys: KeySet, expected: Expected) -> None:
        """Raise `ValueError` where no audience is expected: then any token of the issuer would do."""
        if not any(expected.audiences):
            raise ValueError("an audience is needed, or tokens for other services would be taken")
        self._keys = keys
        self._expected = expected

    @property
    def issuer(self) -> str:
        """Who issues the tokens that are taken."""
        return self._expected.issuer

    async def verify(self, token: str) -> Principal:
        """Return whom a token proves; raise `BadToken`, or `KeysUnavailable`."""
        if len(token) > MAX_TOKEN:
            raise BadToken(f"it is longer than {MAX_TOKEN} characters")
        key = await self._key_of(token)
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._expected.audiences,
                issuer=self._expected.issuer,
                leeway=self._expected.leeway,
                options={"require": ["exp", "iss", "aud"], "enforce_minimum_key_length": True},
            )
        except jwt.PyJWTError as error:
            raise BadToken(_told(error)) from None
        return Principal(OIDC_PREFIX + self._user(claims), self._groups(claims), "oidc")

    async def _key_of(self, token: str) -> jwt.PyJWK:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise BadToken("it is neither an API key nor a JSON Web Token") from None
        if header.get("alg") not in ALGORITHMS:
            raise BadToken(f"it is not signed with a public key; the algorithms are {', '.join(ALGORITHMS)}")
        key = await self._keys.find(header.get("kid"))
        if key is None:
            raise BadToken("it is signed with a key that its issuer does not have")
        return key

    def _user(self, claims: Mapping[str, Any]) -> str:
        name = self._expected.user_claim
        user = _claim(claims, name)
        if not isinstance(user, str) or not 0 < len(user) <= _MAX_USER or not user.isprintable():
            raise BadToken(f"its claim {name!r} names no user")
        if name == "email" and claims.get("email_verified") is not True:
            raise BadToken("its issuer has not verified the address in its claim 'email'")
        return user

    def _groups(self, claims: Mapping[str, Any]) -> frozenset[str]:
        name = self._expected.groups_claim
        found = _claim(claims, name) if name else None
        groups = [] if found is None else [found] if isinstance(found, str) else found
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise BadToken(f"its claim {name!r} is no list of groups")
        return frozenset(groups)


def _claim(claims: Mapping[str, Any], name: str) -> object:
    if name in claims:
        return claims[name]
    found: object = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _told(error: jwt.PyJWTError) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"it lacks the claim {error.claim!r}"
    return next((told for kind, told in _TOLD.items() if isinstance(error, kind)), "it cannot be read")
