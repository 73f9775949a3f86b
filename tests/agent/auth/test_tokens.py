"""OIDC tokens of a real issuer: which are taken, which are not and why, and how its keys are fetched."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import ssl
import time
from dataclasses import replace
from typing import Any

import aiohttp
import jwt
import pytest

from beckon_agent.auth.oidc import ExpectedToken, Intervals, KeySet, KeySource, TokenVerifier
from beckon_agent.auth.options import BadToken, KeysUnavailable
from beckon_agent.core.context import Principal
from tests.agent.auth.issuer import AUDIENCE, Issuer, SigningKey, ec_key, ed_key, issuing, rsa_key


def verifier(
    issuer: Issuer, session: aiohttp.ClientSession, intervals: Intervals | None = None, **expected: Any
) -> TokenVerifier:
    wanted = replace(ExpectedToken(issuer=issuer.url, audiences=(AUDIENCE,)), **expected)
    return TokenVerifier(KeySet(session, KeySource(issuer.url), intervals), wanted)


async def refusal_of(token: str, checks: TokenVerifier) -> str:
    with pytest.raises(BadToken) as caught:
        await checks.verify(token)
    return str(caught.value)


def forged(header: dict[str, object], claims: dict[str, Any], secret: bytes = b"") -> str:
    """Return a token by hand, since no library would make it."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in (header, claims)]
    signature = hmac.new(secret, b".".join(parts), hashlib.sha256).digest() if secret else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


@pytest.mark.parametrize(
    "key",
    [rsa_key(), rsa_key(algorithm="PS256"), ec_key(), ed_key()],
    ids=["RS256", "PS256", "ES256", "EdDSA"],
)
async def test_a_token_of_the_issuer_says_who_asks(key: SigningKey, session: aiohttp.ClientSession) -> None:
    async with issuing(key) as issuer:
        checks = verifier(issuer, session)

        assert await checks.verify(issuer.token()) == Principal("oidc:alice", frozenset({"finance"}), "oidc")
        assert await checks.verify(issuer.token(sub="bob", groups=None)) == Principal(
            "oidc:bob", frozenset(), "oidc"
        )
        assert issuer.fetched == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"exp": int(time.time()) - 60}, "its time is over"),
        ({"exp": None}, "it lacks the claim 'exp'"),
        ({"nbf": int(time.time()) + 3600}, "it is not valid yet"),
        ({"iat": int(time.time()) + 3600}, "it is not valid yet"),
        ({"aud": "another-service"}, "it is meant for another audience"),
        ({"aud": None}, "it lacks the claim 'aud'"),
        ({"iss": "https://elsewhere.example"}, "it is of another issuer"),
        ({"iss": None}, "it lacks the claim 'iss'"),
        ({"sub": None}, "its claim 'sub' names no user"),
        ({"sub": ""}, "its claim 'sub' names no user"),
        ({"sub": "a" * 256}, "its claim 'sub' names no user"),
        ({"sub": "alice\nroot"}, "its claim 'sub' names no user"),
        ({"groups": {"finance": True}}, "its claim 'groups' is no list of groups"),
        ({"groups": ["finance", 1]}, "its claim 'groups' is no list of groups"),
    ],
)
async def test_a_token_that_says_something_else_is_refused(
    changes: dict[str, Any], why: str, issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    said = await refusal_of(issuer.token(**changes), verifier(issuer, session))

    assert said.startswith(why)


async def test_clocks_may_differ_a_little_and_no_more(issuer: Issuer, session: aiohttp.ClientSession) -> None:
    token = issuer.token(exp=int(time.time()) - 10)

    assert (await verifier(issuer, session).verify(token)).id == "oidc:alice"
    assert "its time is over" in await refusal_of(token, verifier(issuer, session, leeway=5))


async def test_a_token_without_a_signature_is_refused(issuer: Issuer, session: aiohttp.ClientSession) -> None:
    checks = verifier(issuer, session)
    for alg in ("none", "None", "NONE", "", None):
        token = forged({"alg": alg, "typ": "JWT", "kid": "ec"}, issuer.claims())

        assert "not signed with a public key" in await refusal_of(token, checks)
    assert issuer.fetched == 0


async def test_a_public_key_is_no_shared_secret(session: aiohttp.ClientSession) -> None:
    """Algorithm confusion (RFC 8725, section 2.1): the key that everybody may read signs nothing."""
    async with issuing(rsa_key()) as issuer:
        checks = verifier(issuer, session)
        public = json.dumps(issuer.keys[0].public_jwk()).encode()
        for alg in ("HS256", "HS384", "HS512"):
            token = forged({"alg": alg, "typ": "JWT", "kid": "rsa"}, issuer.claims(), public)

            assert "not signed with a public key" in await refusal_of(token, checks)


async def test_a_shared_secret_in_a_key_set_verifies_nothing(session: aiohttp.ClientSession) -> None:
    async with issuing(rsa_key()) as issuer:
        secret = b"s" * 32
        jwk = {"kty": "oct", "kid": "shared", "k": base64.urlsafe_b64encode(secret).decode().rstrip("=")}
        issuer.more_jwks = [jwk]
        checks = verifier(issuer, session)

        hs256 = forged({"alg": "HS256", "kid": "shared"}, issuer.claims(), secret)
        assert "not signed with a public key" in await refusal_of(hs256, checks)
        rs256 = forged({"alg": "RS256", "kid": "shared"}, issuer.claims(), secret)
        assert "a key that its issuer does not have" in await refusal_of(rs256, checks)


async def test_a_key_is_used_with_its_own_algorithm_alone(session: aiohttp.ClientSession) -> None:
    async with issuing(rsa_key()) as issuer:
        other = SigningKey("rsa", "PS256", issuer.keys[0].private)

        said = await refusal_of(other.sign(issuer.claims()), verifier(issuer, session))

        assert said == "it is not signed as its key has to be used"


async def test_a_key_for_encryption_verifies_nothing(session: aiohttp.ClientSession) -> None:
    async with issuing(rsa_key("sig")) as issuer:
        other = rsa_key("enc")
        issuer.more_jwks = [{**other.public_jwk(), "use": "enc"}]

        said = await refusal_of(other.sign(issuer.claims()), verifier(issuer, session))

        assert said == "it is signed with a key that its issuer does not have"


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")  # when the test signs
async def test_a_key_that_is_too_short_is_not_trusted(session: aiohttp.ClientSession) -> None:
    async with issuing(rsa_key(bits=1024)) as issuer:
        assert await refusal_of(issuer.token(), verifier(issuer, session)) == "it cannot be read"


async def test_a_signature_of_another_issuer_does_not_fit(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    stranger = ec_key("ec")
    good = issuer.token()
    head, _, tail = good.split(".")
    changed = jwt.encode(issuer.claims(sub="root"), stranger.private, "ES256").split(".")[1]
    checks = verifier(issuer, session)

    assert await refusal_of(stranger.sign(issuer.claims()), checks) == "its signature does not fit"
    assert await refusal_of(f"{head}.{changed}.{tail}", checks) == "its signature does not fit"


async def test_keys_that_a_token_brings_along_are_not_looked_at(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    stranger = ec_key("stranger")
    token = stranger.sign(issuer.claims(), jwk=stranger.public_jwk(), jku=f"{issuer.url}/keys")

    said = await refusal_of(token, verifier(issuer, session))

    assert said == "it is signed with a key that its issuer does not have"


@pytest.mark.parametrize(
    "token",
    ["", "x", "a.b.c", "..", "a" * 20_000, "e30.e30.e30", "W10.e30.", "é.é.é", "bnVsbA.bnVsbA."],
)
async def test_nonsense_is_no_token(token: str, issuer: Issuer, session: aiohttp.ClientSession) -> None:
    said = await refusal_of(token, verifier(issuer, session))

    assert len(token) < 5 or token not in said
    assert issuer.fetched == 0


async def test_a_rotated_key_is_taken_and_its_old_one_no_more(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    checks = verifier(issuer, session, Intervals(pause=0))
    old = issuer.token()
    await checks.verify(old)

    issuer.keys = [ec_key("next")]

    assert (await checks.verify(issuer.token())).id == "oidc:alice"
    assert await refusal_of(old, checks) == "it is signed with a key that its issuer does not have"
    assert (await checks.verify(issuer.token())).id == "oidc:alice"


async def test_made_up_key_ids_do_not_make_the_service_ask_the_issuer_again_and_again(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    checks = verifier(issuer, session)
    made_up = [ec_key(f"made-up-{number}").sign(issuer.claims()) for number in range(20)]

    said = await asyncio.gather(*(refusal_of(token, checks) for token in made_up))

    assert set(said) == {"it is signed with a key that its issuer does not have"}
    assert issuer.fetched == 1


async def test_requests_at_the_same_time_fetch_the_keys_once(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    checks = verifier(issuer, session, Intervals(pause=30))

    found = await asyncio.gather(*(checks.verify(issuer.token()) for _ in range(20)))

    assert {one.id for one in found} == {"oidc:alice"}
    assert issuer.fetched == 1


async def test_a_token_that_names_no_key_is_checked_with_the_only_one(session: aiohttp.ClientSession) -> None:
    key = ec_key()
    async with issuing(key) as issuer:
        token = jwt.encode(issuer.claims(), key.private, "ES256")
        assert (await verifier(issuer, session).verify(token)).id == "oidc:alice"

        issuer.keys.append(ec_key("second"))
        assert "does not have" in await refusal_of(token, verifier(issuer, session))


async def test_the_last_keys_stay_in_force_while_the_issuer_does_not_answer(
    issuer: Issuer, session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    checks = verifier(issuer, session, Intervals(fresh=0, pause=0))
    await checks.verify(issuer.token())
    issuer.trouble = "error"

    assert (await checks.verify(issuer.token())).id == "oidc:alice"
    assert issuer.fetched == 2
    assert "answered 500" in caplog.text


async def test_keys_that_are_too_old_are_trusted_no_more(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    checks = verifier(issuer, session, Intervals(fresh=0, stale=0, pause=0))
    issuer.trouble = "error"

    with pytest.raises(KeysUnavailable, match="try again shortly"):
        await checks.verify(issuer.token())


@pytest.mark.parametrize(
    ("trouble", "logged"),
    [
        ("error", "answered 500"),
        ("html", "answered no JSON object"),
        ("large", "answered more than"),
        ("redirect", "answered 307"),
        ("no keys", "did not contain any keys"),
    ],
)
async def test_what_the_issuer_answers_wrongly_is_logged_and_no_one_is_let_in(
    trouble: str,
    logged: str,
    issuer: Issuer,
    session: aiohttp.ClientSession,
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer.trouble = trouble
    token = issuer.token()

    with pytest.raises(KeysUnavailable):
        await verifier(issuer, session).verify(token)

    assert logged in caplog.text
    assert token not in caplog.text


@pytest.mark.parametrize(
    ("says", "logged"),
    [
        ({"named": "https://elsewhere.example"}, "names another issuer"),
        ({"keys_at": "http://elsewhere.example/keys"}, "must begin with https://"),
        ({"keys_at": "file:///etc/keys"}, "must begin with https://"),
    ],
)
async def test_a_discovery_document_of_another_is_not_followed(
    says: dict[str, str],
    logged: str,
    issuer: Issuer,
    session: aiohttp.ClientSession,
    caplog: pytest.LogCaptureFixture,
) -> None:
    issuer.named, issuer.keys_at = says.get("named", ""), says.get("keys_at", "")

    with pytest.raises(KeysUnavailable):
        await verifier(issuer, session).verify(issuer.token())

    assert logged in caplog.text


async def test_an_issuer_that_is_away_lets_no_one_in(session: aiohttp.ClientSession, issuer: Issuer) -> None:
    token = issuer.token()
    away = KeySource(issuer.url, "http://127.0.0.1:9/keys")
    checks = TokenVerifier(KeySet(session, away), ExpectedToken(issuer=issuer.url, audiences=(AUDIENCE,)))

    with pytest.raises(KeysUnavailable):
        await checks.verify(token)


async def test_users_and_groups_are_read_from_the_claims_that_are_set(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    checks = verifier(issuer, session, user_claim="email", groups_claim="realm_access.roles")
    claims: dict[str, Any] = {
        "email": "a@example.com", "email_verified": True, "realm_access": {"roles": ["ops"]}
    }  # fmt: skip

    found = await checks.verify(issuer.token(**claims))

    assert found == Principal("oidc:a@example.com", frozenset({"ops"}), "oidc")
    for unproved in (False, None, "true"):
        claims["email_verified"] = unproved
        assert "has not verified" in await refusal_of(issuer.token(**claims), checks)


async def test_a_claim_whose_name_has_dots_and_one_group_as_text_are_read(
    issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    checks = verifier(issuer, session, groups_claim="https://example.com/groups")

    found = await checks.verify(issuer.token(**{"https://example.com/groups": "ops"}))

    assert found.groups == {"ops"}


@pytest.mark.parametrize(
    "url", ["http://issuer.example", "issuer.example", "https://", "ftp://issuer.example", ""]
)
def test_keys_are_not_fetched_without_https(url: str) -> None:
    with pytest.raises(ValueError, match="must begin with https://"):
        KeySource(url or "x:")


def test_an_issuer_of_this_machine_or_behind_tls_is_called() -> None:
    KeySource("https://issuer.example/realm", trust=ssl.create_default_context())
    KeySource("http://localhost:8080")
    KeySource("http://[::1]:8080", "http://127.0.0.2/keys")


async def test_some_audience_must_be_expected(session: aiohttp.ClientSession) -> None:
    keys = KeySet(session, KeySource("https://issuer.example"))

    with pytest.raises(ValueError, match="tokens for other services would be taken"):
        TokenVerifier(keys, ExpectedToken(issuer="https://issuer.example", audiences=()))


async def test_no_token_is_ever_logged(
    issuer: Issuer, session: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    checks = verifier(issuer, session)
    good, late = issuer.token(), issuer.token(exp=1)

    await checks.verify(good)
    said = await refusal_of(late, checks)

    for token in (good, late):
        for part in token.split("."):
            assert part not in caplog.text
            assert part not in said
