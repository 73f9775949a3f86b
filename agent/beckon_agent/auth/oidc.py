"""OIDC bearer tokens, and the public keys of their issuer.

The keys are fetched when they are needed, and again when they have changed.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import jwt
import orjson

from beckon_agent.auth.options import BadToken, KeysUnavailable, secure_url
from beckon_agent.core.context import Principal
from beckon_contract.resources.agent_terms import OIDC_PREFIX

logger = logging.getLogger(__name__)

_PATIENCE = aiohttp.ClientTimeout(total=5)
_MAX_BYTES = 512 * 1024
_DISCOVERY = "/.well-known/openid-configuration"
_ASYMMETRIC = frozenset({"RSA", "EC", "OKP"})


class _BadAnswer(Exception):
    """An unusable answer of the issuer."""


@dataclass(frozen=True, slots=True)
class _Keys:
    """The fetched keys, and their time on the monotonic clock."""

    keys: tuple[jwt.PyJWK, ...]
    at: float


@dataclass(frozen=True, slots=True)
class Intervals:
    """The seconds of use of fetched keys, and between fetches.

    `fresh`: use without fetching again. `stale`: use while the issuer does not answer. `pause`: between
    two fetches, so that made-up key ids are no lever against the issuer.
    """

    fresh: float = 600.0
    stale: float = 3600.0
    pause: float = 10.0


@dataclass(frozen=True, slots=True)
class KeySource:
    """The source of an issuer's keys: `jwks_url`, or else discovery.

    Raises `ValueError` for an address with neither https nor a loopback host. `trust` is for an issuer
    whose certificate no public authority has signed.
    """

    issuer: str
    jwks_url: str = ""
    trust: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        """Check the addresses."""
        for url in filter(None, (self.issuer, self.jwks_url)):
            secure_url(url)


class KeySet:
    """The signing keys of an issuer.

    An unknown key id is a reason to fetch them anew, since issuers rotate keys, but not more often than
    `pause` allows. While the issuer does not answer, the last keys are used for `stale` seconds.
    """

    def __init__(
        self, session: aiohttp.ClientSession, source: KeySource, intervals: Intervals | None = None
    ) -> None:
        self._session = session
        self._source = source
        self._intervals = intervals or Intervals()
        self._known: _Keys | None = None
        self._next_fetch = 0.0
        self._fetching = asyncio.Lock()

    async def find_key(self, kid: str | None) -> jwt.PyJWK | None:
        """Return the key with an id, `None` if there is none.

        Without an id, the issuer's key if it has exactly one. Raises `KeysUnavailable`.
        """
        await self._refresh_keys(unless_newer_than=time.monotonic() - self._intervals.fresh)
        key = self._pick_key(kid)
        if key is None:
            await self._refresh_keys(unless_newer_than=time.monotonic())
            key = self._pick_key(kid)
        return key

    def _pick_key(self, kid: str | None) -> jwt.PyJWK | None:
        known = self._known
        if known is None or known.at < time.monotonic() - self._intervals.stale:
            raise KeysUnavailable("the keys of the token's issuer cannot be fetched now; try again shortly")
        if kid is None:
            return known.keys[0] if len(known.keys) == 1 else None
        return next((key for key in known.keys if key.key_id == kid), None)

    async def _refresh_keys(self, *, unless_newer_than: float) -> None:
        if self._known is not None and self._known.at > unless_newer_than:
            return
        async with self._fetching:  # a task that waited here finds what another has fetched
            if time.monotonic() < self._next_fetch:
                return
            try:
                self._known = _Keys(await self._fetch_keys(), time.monotonic())
                logger.info("fetched %d keys of the issuer %s", len(self._known.keys), self._source.issuer)
            except (aiohttp.ClientError, OSError, TimeoutError, _BadAnswer) as error:
                reason = str(error) or type(error).__name__
                logger.warning("the keys of the issuer %s cannot be fetched: %s", self._source.issuer, reason)
            finally:
                self._next_fetch = time.monotonic() + self._intervals.pause

    async def _fetch_keys(self) -> tuple[jwt.PyJWK, ...]:
        document = await self._get_object(self._source.jwks_url or await self._discover_address())
        try:
            known = jwt.PyJWKSet.from_dict(dict(document)).keys
        except jwt.PyJWTError as error:
            raise _BadAnswer(str(error)) from None
        keys = [key for key in known if key.key_type in _ASYMMETRIC and key.public_key_use in (None, "sig")]
        if not keys:
            raise _BadAnswer("its key set holds no public key for signatures")
        return tuple(keys)

    async def _discover_address(self) -> str:
        """Return the address of the keys from the issuer's discovery document.

        OpenID Connect Discovery 1.0, section 4.
        """
        document = await self._get_object(self._source.issuer.rstrip("/") + _DISCOVERY)
        if document.get("issuer") != self._source.issuer:
            raise _BadAnswer("its discovery document names another issuer; check BECKON_OIDC_ISSUER")
        try:
            return secure_url(str(document.get("jwks_uri")))
        except ValueError as error:
            raise _BadAnswer(f"jwks_uri of its discovery document: {error}") from None

    async def _get_object(self, url: str) -> Mapping[str, object]:
        """Return a JSON object; redirects are not followed. A redirect may lead to an unchecked address."""
        async with self._session.get(
            url, ssl=self._source.trust or True, timeout=_PATIENCE, allow_redirects=False
        ) as response:
            if response.status != 200:
                raise _BadAnswer(f"{url} answered {response.status}")
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _MAX_BYTES:
                    raise _BadAnswer(f"{url} answered more than {_MAX_BYTES} bytes")
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError:
            document = None
        if not isinstance(document, dict):
            raise _BadAnswer(f"{url} answered no JSON object")
        return document


# None with a shared secret: a public key that passes for one would let anybody sign (RFC 8725, 3.1).
ALGORITHMS = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
MAX_TOKEN = 16 * 1024  # characters
_MAX_USER = 255  # characters; OpenID Connect Core 1.0, section 2, of `sub`

_ERROR_TEXTS: Mapping[type[jwt.PyJWTError], str] = {
    jwt.ExpiredSignatureError: "its time is over; fetch a new one",
    jwt.ImmatureSignatureError: "it is not valid yet; check the clocks",
    jwt.InvalidAudienceError: "it is meant for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidSignatureError: "its signature does not fit",
    jwt.InvalidAlgorithmError: "it is not signed as its key has to be used",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    """The expected content of a token.

    `leeway` is the seconds by which clocks may differ. A claim is found by its whole name, or by a path
    with dots, such as `realm_access.roles`.
    """

    issuer: str
    audiences: Sequence[str]
    user_claim: str = "sub"
    groups_claim: str = "groups"
    leeway: float = 30.0


class TokenVerifier:
    """Checks tokens of one issuer."""

    def __init__(self, keys: KeySet, expected: ExpectedToken) -> None:
        """Raise `ValueError` if no audience is expected. Any token of the issuer would be accepted then."""
        if not any(expected.audiences):
            raise ValueError("an audience is needed, or tokens for other services would be taken")
        self._keys = keys
        self._expected = expected

    @property
    def issuer(self) -> str:
        """The issuer of the accepted tokens."""
        return self._expected.issuer

    async def verify(self, token: str) -> Principal:
        """Return the principal of a token; raise `BadToken` or `KeysUnavailable`."""
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
            raise BadToken(_error_text(error)) from None
        return Principal(OIDC_PREFIX + self._read_user(claims), self._read_groups(claims), "oidc")

    async def _key_of(self, token: str) -> jwt.PyJWK:
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            raise BadToken("it is neither an API key nor a JSON Web Token") from None
        if header.get("alg") not in ALGORITHMS:
            raise BadToken(f"it is not signed with a public key; the algorithms are {', '.join(ALGORITHMS)}")
        key = await self._keys.find_key(header.get("kid"))
        if key is None:
            raise BadToken("it is signed with a key that its issuer does not have")
        return key

    def _read_user(self, claims: Mapping[str, Any]) -> str:
        name = self._expected.user_claim
        user = _read_claim(claims, name)
        if not isinstance(user, str) or not 0 < len(user) <= _MAX_USER or not user.isprintable():
            raise BadToken(f"its claim {name!r} names no user")
        if name == "email" and claims.get("email_verified") is not True:
            raise BadToken("its issuer has not verified the address in its claim 'email'")
        return user

    def _read_groups(self, claims: Mapping[str, Any]) -> frozenset[str]:
        name = self._expected.groups_claim
        claim = _read_claim(claims, name) if name else None
        groups = [] if claim is None else [claim] if isinstance(claim, str) else claim
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise BadToken(f"its claim {name!r} is no list of groups")
        return frozenset(groups)


def _read_claim(claims: Mapping[str, Any], name: str) -> object:
    if name in claims:
        return claims[name]
    value: object = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _error_text(error: jwt.PyJWTError) -> str:
    if isinstance(error, jwt.MissingRequiredClaimError):
        return f"it lacks the claim {error.claim!r}"
    return next((text for kind, text in _ERROR_TEXTS.items() if isinstance(error, kind)), "it cannot be read")
