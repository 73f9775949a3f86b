"""From settings to an `Authenticator`."""

import ssl
from pathlib import Path

import aiohttp

from beckon_agent.access.authentication import Authenticator, Tokens
from beckon_agent.access.key_file import KeyFile
from beckon_agent.access.options import AccessOptions, OidcOptions
from beckon_contract.origins import is_loopback


def authenticator(options: AccessOptions, session: aiohttp.ClientSession) -> Authenticator:
    """Return what tells who asks; raise `ValueError` with the cause and the cure.

    The file of keys need not be there yet; until it is, no key is valid.
    """
    keys = None if options.keys_file is None else KeyFile(options.keys_file)
    tokens = None if options.oidc is None else _verifier(options.oidc, session)
    checked = keys is not None or tokens is not None
    anonymous = options.anonymous
    if anonymous is None:
        anonymous = is_loopback(options.host) and not checked
    if not anonymous and not checked:
        raise ValueError(
            f"listening on {options.host}, the agent would let nobody in; set BECKON_KEYS_FILE or "
            "BECKON_OIDC_ISSUER, or open it to everybody who reaches it with BECKON_ANONYMOUS=true"
        )
    return Authenticator(keys, tokens, anonymous=anonymous)


def _verifier(options: OidcOptions, session: aiohttp.ClientSession) -> Tokens:
    # Imported late: a quarter of a second and 10 MB that a service without an issuer need not spend.
    from beckon_agent.access.key_set import KeySet, Source  # noqa: PLC0415  # see above
    from beckon_agent.access.tokens import Expected, TokenVerifier  # noqa: PLC0415  # see above

    trust = _trust(options.ca_file)
    try:
        source = Source(options.issuer, options.jwks_url, trust)
    except ValueError as error:
        raise ValueError(f"BECKON_OIDC_ISSUER, BECKON_OIDC_JWKS_URL: {error}") from None
    expected = Expected(
        issuer=options.issuer,
        audiences=options.audiences,
        user_claim=options.user_claim,
        groups_claim=options.groups_claim,
        leeway=options.leeway,
    )
    try:
        return TokenVerifier(KeySet(session, source), expected)
    except ValueError as error:
        raise ValueError(f"BECKON_OIDC_AUDIENCE: {error}") from None


def _trust(ca_file: Path | None) -> ssl.SSLContext | None:
    if ca_file is None:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ValueError(f"BECKON_OIDC_CA_FILE: {ca_file} holds no certificates to trust: {error}") from None
    return context
