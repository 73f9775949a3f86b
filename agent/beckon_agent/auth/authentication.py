"""Authentication of requests: API keys from a file, or bearer tokens of an OIDC issuer.

The file of keys, such as a mounted Secret, is read again when it changes.
"""

import logging
import os
import ssl
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import aiohttp

from beckon_agent.auth.options import AccessOptions, BadToken, OidcOptions, Unauthenticated
from beckon_agent.core.context import ANONYMOUS, Principal
from beckon_contract.api_keys import MAX_KEY, PREFIX, KeyEntry, hash_of, read_lines
from beckon_contract.resources.agent_terms import KEY_PREFIX
from beckon_runtime.origins import is_loopback

logger = logging.getLogger(__name__)

_MAX_BYTES = 4 * 1024 * 1024  # a Secret holds 1 MiB

_State = tuple[int, int, int]


class KeyFile:
    """The API keys of a file.

    If it cannot be read, no key is valid. A look-up checks first if the file has changed, at most once in
    `every` seconds: a removed key is refused from then on.
    """

    def __init__(self, path: Path, every: float = 1.0) -> None:
        self._path = path
        self._every = every
        self._entries: dict[str, list[KeyEntry]] = {}
        self._state: _State | None = None
        self._look_at = 0.0
        self._logged = ""

    def find_key(self, key: str) -> KeyEntry | None:
        """Return the entry of a key, `None` if unknown or expired."""
        self._refresh_keys()
        now = datetime.now(UTC)
        valid = (entry for entry in self._entries.get(hash_of(key), ()) if not entry.expired(now))
        return next(valid, None)

    def _refresh_keys(self) -> None:
        now = time.monotonic()
        if now < self._look_at:
            return
        self._look_at = now + self._every
        try:
            status = self._path.stat()  # of what the link points to: the kubelet swaps the link
            state = status.st_mtime_ns, status.st_size, status.st_ino
            if state == self._state:
                return
            self._read_file(status)
            self._state = state
        except (OSError, ValueError) as error:
            self._entries, self._state = {}, None
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._log_once(f"the API keys in {self._path} cannot be read, so none is valid: {reason}")

    def _read_file(self, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise ValueError(f"it is no file of at most {_MAX_BYTES} bytes")
        entries, bad = read_lines(self._path.read_bytes().decode())
        by_digest: dict[str, list[KeyEntry]] = {}
        for entry in entries:
            by_digest.setdefault(entry.hash, []).append(entry)
        self._entries, self._logged = by_digest, ""
        logger.info("read %d API keys from %s", len(entries), self._path)
        for line in bad:
            logger.error("%s line %d is no valid key: %s", self._path, line.number, line.message)

    def _log_once(self, message: str) -> None:
        """Log a problem once, not with every request."""
        if message != self._logged:
            logger.error("%s", message)
            self._logged = message


Headers = Iterable[tuple[bytes, bytes]]


class Tokens(Protocol):
    """Checks bearer tokens."""

    @property
    def issuer(self) -> str:
        """The issuer of the accepted tokens."""
        ...

    async def verify(self, token: str) -> Principal:
        """Return the principal of a token; raise `BadToken` or `KeysUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Identifies the sender of a request.

    With `anonymous`, callers without a credential are accepted. On loopback the server in front has refused
    the requests of web pages by then (`beckon_runtime.origins`).
    """

    keys: KeyFile | None = None
    tokens: Tokens | None = None
    anonymous: bool = False

    async def identify_sender(self, headers: Headers) -> Principal:
        """Return the sender of a request; raise `Unauthenticated` or `KeysUnavailable`."""
        lines = list(headers)
        credentials = [value for name, value in lines if name == b"authorization"]
        closed = self.keys is not None or self.tokens is not None
        if credentials and closed:
            return await self._prove_principal(credentials)
        if not self.anonymous:
            raise Unauthenticated(self._wanted_credentials(), tried=False)
        return ANONYMOUS  # where there is nothing to check against, a key that a client must send is no claim

    async def _prove_principal(self, credentials: list[bytes]) -> Principal:
        scheme, _, credential = credentials[0].decode("latin-1").strip().partition(" ")
        credential = credential.strip()
        if len(credentials) > 1 or scheme.lower() != "bearer" or not credential.isascii() or not credential:
            raise Unauthenticated(
                f"the header 'authorization' cannot be used; {self._wanted_credentials()}", tried=True
            )
        if self.keys is not None and credential.startswith(PREFIX):
            entry = self.keys.find_key(credential) if len(credential) <= MAX_KEY else None
            if entry is None:
                raise Unauthenticated(
                    "the API key is not valid: it is unknown, revoked, or its time is over", tried=True
                )
            return Principal(KEY_PREFIX + entry.name, entry.groups, "key")
        if self.tokens is None:
            raise Unauthenticated(f"the credential is no API key; {self._wanted_credentials()}", tried=True)
        try:
            return await self.tokens.verify(credential)
        except BadToken as error:
            raise Unauthenticated(f"the token is not valid: {error}", tried=True) from None

    def _wanted_credentials(self) -> str:
        known = [
            *(["an API key of `beckon keys new`"] if self.keys is not None else []),
            *(["a token of the OIDC issuer"] if self.tokens is not None else []),
        ]
        if not known:
            return "this service admits no client: neither API keys nor an OIDC issuer are set up"
        return f"send {' or '.join(known)} in the header 'authorization: Bearer …'"


def make_authenticator(options: AccessOptions, session: aiohttp.ClientSession) -> Authenticator:
    """Return the authenticator of these options.

    Raises `ValueError` with cause and cure. The file of keys need not exist yet; until it does, no key is
    valid.
    """
    keys = None if options.keys_file is None else KeyFile(options.keys_file)
    tokens = None if options.oidc is None else _make_verifier(options.oidc, session)
    checked = keys is not None or tokens is not None
    anonymous = options.anonymous
    if anonymous is None:
        anonymous = is_loopback(options.host) and not checked
    if not anonymous and not checked:
        raise ValueError(
            f"listening on {options.host}, the agent would admit no client; set BECKON_KEYS_FILE or "
            "BECKON_OIDC_ISSUER, or open it to all that reach it with BECKON_ANONYMOUS=true"
        )
    return Authenticator(keys, tokens, anonymous=anonymous)


def _make_verifier(options: OidcOptions, session: aiohttp.ClientSession) -> Tokens:
    # Imported late: a quarter of a second and 10 MB that a service without an issuer need not spend.
    from beckon_agent.auth.oidc import ExpectedToken, KeySet, KeySource, TokenVerifier  # noqa: PLC0415  # see above

    trust = _load_trust(options.ca_file)
    try:
        source = KeySource(options.issuer, options.jwks_url, trust)
    except ValueError as error:
        raise ValueError(f"BECKON_OIDC_ISSUER, BECKON_OIDC_JWKS_URL: {error}") from None
    expected = ExpectedToken(
        issuer=options.issuer,
        audiences=options.audiences,
        user_claim=options.user_claim,
        groups_claim=options.groups_claim,
    )
    try:
        return TokenVerifier(KeySet(session, source), expected)
    except ValueError as error:
        raise ValueError(f"BECKON_OIDC_AUDIENCE: {error}") from None


def _load_trust(ca_file: Path | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"BECKON_OIDC_CA_FILE: {ca_file} holds no certificates to trust: {error}") from None
    return context
