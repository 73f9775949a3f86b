"""Who is admitted at which path: anonymous callers, brokers, and the refusals of others."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import httpx
import pytest
import trustme
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from beckon_agent.api.access import AuthMiddleware
from beckon_agent.auth.authentication import Authenticator, KeyFile, make_authenticator
from beckon_agent.auth.options import AccessOptions, OidcOptions
from beckon_agent.core.context import (
    ANONYMOUS,
    EVENTS,
    UNAUTHENTICATED,
    NoPrincipal,
    Principal,
    acting_as,
    current_principal,
    read_principal,
)
from beckon_contract.api_keys import new_entry, new_key
from tests.agent.auth.issuer import AUDIENCE, Issuer
from tests.patience import PATIENCE
from tests.serving import served


async def who_am_i(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer whom the request is served for: as the task, a task of its own, and the scope know it."""

    async def inside() -> Principal:
        return current_principal()

    found = current_principal()
    assert await asyncio.create_task(inside()) is found
    assert Request(scope).state.principal is found
    await JSONResponse(found.to_document())(scope, receive, send)


@asynccontextmanager
async def behind(
    checks: Authenticator, *, open_to_brokers: bool = False, public_url: str = ""
) -> AsyncIterator[httpx.AsyncClient]:
    app = AuthMiddleware(who_am_i, checks, open_to_brokers=open_to_brokers, public_url=public_url)
    async with served(app, lifespan="off") as url, httpx.AsyncClient(base_url=url, timeout=PATIENCE) as http:
        yield http


@pytest.fixture
def key() -> str:
    return new_key()


@pytest.fixture
def keys(tmp_path: Path, key: str) -> Path:
    file = tmp_path / "keys.jsonl"
    file.write_text(new_entry(key, "ci", ["ops"]).line())
    return file


def bearer(credential: str, scheme: str = "Bearer") -> dict[str, str]:
    return {"authorization": f"{scheme} {credential}"}


async def test_a_request_is_served_for_the_principal_of_its_credential(
    keys: Path, key: str, issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    oidc = OidcOptions(issuer=issuer.url, audiences=("other", AUDIENCE))
    checks = make_authenticator(AccessOptions(host="0.0.0.0", keys_file=keys, oidc=oidc), session)
    async with behind(checks) as http:
        by_key = await http.get("/who", headers=bearer(key))
        by_token = await http.get("/who", headers=bearer(issuer.token(), "bearer"))

    assert by_key.json() == {"id": "key:ci", "groups": ["ops"], "kind": "key"}
    assert by_token.json() == {"id": "oidc:alice", "groups": ["finance"], "kind": "oidc"}


async def test_requests_at_the_same_time_are_served_each_for_its_own(tmp_path: Path) -> None:
    made = {f"user-{number}": new_key() for number in range(30)}
    file = tmp_path / "keys.jsonl"
    file.write_text("\n".join(new_entry(key, name).line() for name, key in made.items()))
    async with behind(Authenticator(keys=KeyFile(file))) as http:
        answers = await asyncio.gather(*(http.get("/who", headers=bearer(key)) for key in made.values()))

    assert [answer.json()["id"] for answer in answers] == [f"key:{name}" for name in made]


def revoke_all(keys: Path) -> None:
    keys.write_text("")


async def test_the_page_is_for_everybody_and_nothing_else_is(keys: Path) -> None:
    async with behind(Authenticator(keys=KeyFile(keys))) as http:
        page = [(await http.get(path)).status_code for path in ("/", "/page/a/app.js")]
        rest = [(await http.get(path)).status_code for path in ("/pages", "/tools", "/runs", "/v1/models")]
        posted = (await http.post("/", json={})).status_code

    assert page == [200, 200]
    assert {*rest, posted} == {401}


async def test_a_revoked_key_is_refused_as_soon_as_the_file_says_so(keys: Path, key: str) -> None:
    async with behind(Authenticator(keys=KeyFile(keys, every=0))) as http:
        assert (await http.get("/who", headers=bearer(key))).status_code == 200
        revoke_all(keys)
        assert (await http.get("/who", headers=bearer(key))).status_code == 401


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ([("authorization", "Basic dXNlcjpwYXNz")], "cannot be used"),
        ([("authorization", "Bearer")], "cannot be used"),
        ([("authorization", "")], "cannot be used"),
        ([("authorization", "bk_the-key-without-its-scheme")], "cannot be used"),
        ([("authorization", "Bearer b\xe4r")], "cannot be used"),
        ([("authorization", "Bearer bk_" + "a" * 60_000)], "the API key is not valid"),
        ([("authorization", "Bearer sk-1")], "is no API key"),
        ([("authorization", "Bearer bk_1"), ("authorization", "Bearer bk_2")], "cannot be used"),
        ([("x-api-key", "bk_1")], "send an API key"),
    ],
)
async def test_a_credential_that_cannot_be_one_is_refused_and_not_repeated(
    headers: list[tuple[str, str]], why: str, keys: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "beckon_agent")
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    async with behind(Authenticator(keys=KeyFile(keys))) as http:
        answer = await http.get("/v1/models", headers=raw)

    assert answer.status_code == 401
    assert why in answer.json()["error"]["message"]
    secret = headers[-1][1].partition(" ")[2]
    assert not secret or secret not in answer.text + caplog.text


async def test_on_loopback_no_one_needs_a_key_where_none_is_set_up(session: aiohttp.ClientSession) -> None:
    async with behind(make_authenticator(AccessOptions(host="127.0.0.1"), session)) as http:
        plain = await http.get("/who")
        with_a_key_of_a_client_that_must_send_one = await http.get("/who", headers=bearer("none"))

    assert plain.json() == with_a_key_of_a_client_that_must_send_one.json() == ANONYMOUS.to_document()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "agent.example", ""])
async def test_a_service_that_is_open_to_a_network_does_not_start_without_saying_who_is_let_in(
    host: str, session: aiohttp.ClientSession
) -> None:
    for anonymous in (None, False):
        with pytest.raises(ValueError, match="would admit no client; set BECKON_KEYS_FILE or"):
            make_authenticator(AccessOptions(host=host, anonymous=anonymous), session)


async def test_keys_on_loopback_close_the_door_to_anonymous_callers(
    keys: Path, session: aiohttp.ClientSession
) -> None:
    async with behind(make_authenticator(AccessOptions(host="127.0.0.1", keys_file=keys), session)) as http:
        assert (await http.get("/who")).status_code == 401


async def test_an_explicit_setting_opens_it_to_everybody_and_still_checks_what_is_brought(
    keys: Path, key: str, session: aiohttp.ClientSession
) -> None:
    options = AccessOptions(host="0.0.0.0", keys_file=keys, anonymous=True)
    async with behind(make_authenticator(options, session)) as http:
        assert (await http.get("/who", headers={"host": "agent.example"})).json() == ANONYMOUS.to_document()
        assert (await http.get("/who", headers=bearer(key))).json()["id"] == "key:ci"
        assert (await http.get("/who", headers=bearer(new_key()))).status_code == 401
        assert (await http.get("/who", headers=bearer("none"))).status_code == 401


async def test_while_the_issuer_is_away_tokens_are_answered_503_and_keys_work(
    keys: Path, key: str, issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    issuer.trouble = "error"
    oidc = OidcOptions(issuer=issuer.url, audiences=(AUDIENCE,))
    checks = make_authenticator(AccessOptions(host="0.0.0.0", keys_file=keys, oidc=oidc), session)
    async with behind(checks) as http:
        away = await http.get("/tools", headers=bearer(issuer.token()))
        away_v1 = await http.get("/v1/models", headers=bearer(issuer.token()))
        by_key = await http.get("/who", headers=bearer(key))

    assert (away.status_code, away_v1.status_code, by_key.status_code) == (503, 503, 200)
    assert away.headers["retry-after"]
    assert away_v1.headers["retry-after"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/events", "event"),
        ("/events/helper", "event"),
        ("/eventsx", None),
        ("/tools", None),
        ("//events", None),
        ("/EVENTS", None),
    ],
)
async def test_brokers_need_no_credential_for_events_where_that_is_set(
    path: str, kind: str | None, keys: Path
) -> None:
    async with behind(Authenticator(keys=KeyFile(keys)), open_to_brokers=True) as http:
        url = httpx.URL(http.base_url).copy_with(raw_path=path.encode())
        answer = await http.send(http.build_request("POST", url))

    assert (answer.json()["kind"] if answer.status_code == 200 else None) == kind


async def test_a_credential_at_the_events_is_checked_in_any_case(keys: Path, key: str) -> None:
    async with behind(Authenticator(keys=KeyFile(keys)), open_to_brokers=True) as http:
        assert (await http.post("/events", headers=bearer(key))).json()["id"] == "key:ci"
        assert (await http.post("/events", headers=bearer(new_key()))).status_code == 401
    async with behind(Authenticator(keys=KeyFile(keys))) as http:
        assert (await http.post("/events")).status_code == 401


async def test_a_web_socket_is_closed(keys: Path) -> None:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    await AuthMiddleware(who_am_i, Authenticator(anonymous=True))({"type": "websocket"}, receive, send)

    assert sent == [{"type": "websocket.close", "code": 1008}]


async def test_an_issuer_behind_a_private_authority_is_called_with_its_certificate(
    tmp_path: Path, session: aiohttp.ClientSession
) -> None:
    authority, stranger = tmp_path / "ca.pem", tmp_path / "nonsense.pem"
    trustme.CA().cert_pem.write_to_path(authority)
    stranger.write_text("nonsense")
    for file, fits in ((authority, True), (stranger, False), (tmp_path / "missing", False)):
        oidc = OidcOptions(issuer="https://issuer.example", audiences=("a",), ca_file=file)
        options = AccessOptions(host="0.0.0.0", oidc=oidc)
        if fits:
            make_authenticator(options, session)
        else:
            with pytest.raises(ValueError, match=r"BECKON_OIDC_CA_FILE: .* holds no certificates to trust"):
                make_authenticator(options, session)


@pytest.mark.parametrize(
    ("oidc", "said"),
    [
        (OidcOptions(issuer="http://issuer.example", audiences=("a",)), "BECKON_OIDC_ISSUER.*https://"),
        (OidcOptions(issuer="https://issuer.example", audiences=()), "BECKON_OIDC_AUDIENCE: an audience"),
    ],
)
async def test_a_wrong_setting_of_the_issuer_names_itself(
    oidc: OidcOptions, said: str, session: aiohttp.ClientSession
) -> None:
    with pytest.raises(ValueError, match=said):
        make_authenticator(AccessOptions(host="0.0.0.0", oidc=oidc), session)


@pytest.mark.parametrize(
    ("public_url", "base"),
    [("", "http://agent.example:8080"), ("https://agents.example/", "https://agents.example")],
)
async def test_clients_learn_where_tokens_come_from(
    public_url: str, base: str, issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    """RFC 9728: the challenge leads to a document that names the issuer, and the resource as requested."""
    oidc = OidcOptions(issuer=issuer.url, audiences=(AUDIENCE,))
    checks = make_authenticator(AccessOptions(host="0.0.0.0", oidc=oidc), session)
    here = {"host": "agent.example:8080"}
    async with behind(checks, public_url=public_url) as http:
        refused = await http.post("/mcp/helper", headers=here)
        found = await http.get("/.well-known/oauth-protected-resource/mcp/helper", headers=here)
        unnamed = await http.get("/.well-known/oauth-protected-resource", headers=here)
        posted = await http.post("/.well-known/oauth-protected-resource", headers=here)

    document_at = f"{base}/.well-known/oauth-protected-resource/mcp/helper"
    assert f'resource_metadata="{document_at}"' in refused.headers["www-authenticate"]
    assert found.json() == {
        "resource": f"{base}/mcp/helper",
        "authorization_servers": [issuer.url],
        "bearer_methods_supported": ["header"],
    }
    assert unnamed.json()["resource"] == base
    assert posted.status_code == 401


@pytest.mark.parametrize("host", ['a"b.example', "a.example/x", "a.example, b", "", "é.example"])
async def test_a_host_that_is_none_is_not_repeated(
    host: str, issuer: Issuer, session: aiohttp.ClientSession
) -> None:
    oidc = OidcOptions(issuer=issuer.url, audiences=(AUDIENCE,))
    checks = make_authenticator(AccessOptions(host="0.0.0.0", oidc=oidc), session)
    headers = [(b"host", host.encode())]
    async with behind(checks) as http:
        refused = await http.get("/mcp", headers=headers)
        found = await http.get("/.well-known/oauth-protected-resource", headers=headers)

    assert (refused.status_code, found.status_code) == (401, 404)
    assert refused.headers["www-authenticate"] == 'Bearer realm="beckon"'


async def test_where_there_is_no_issuer_there_is_nothing_to_show(keys: Path) -> None:
    async with behind(Authenticator(keys=KeyFile(keys))) as http:
        assert (await http.get("/.well-known/oauth-protected-resource")).status_code == 401
        assert "resource_metadata" not in (await http.get("/mcp")).headers["www-authenticate"]


def test_no_one_asks_where_no_one_has_said_who_asks() -> None:
    with pytest.raises(NoPrincipal):
        current_principal()
    with acting_as(ANONYMOUS):
        assert current_principal() is ANONYMOUS
        with acting_as(EVENTS):
            assert current_principal() is EVENTS
        assert current_principal() is ANONYMOUS
    with pytest.raises(NoPrincipal):
        current_principal()


@pytest.mark.parametrize(
    "who", [ANONYMOUS, UNAUTHENTICATED, EVENTS, Principal("oidc:a", frozenset({"x", "y"}), "oidc")]
)
def test_a_principal_is_read_as_it_was_written(who: Principal) -> None:
    assert read_principal(who.to_document()) == who


@pytest.mark.parametrize(
    "document",
    [{}, {"id": "oidc:a"}, {"id": "", "groups": [], "kind": "key"}, {"id": 1, "groups": [], "kind": "key"},
     {"id": "oidc:a", "groups": [], "kind": "root"}, {"id": "oidc:a", "groups": "ops", "kind": "oidc"}],
)  # fmt: skip
def test_what_is_no_principal_is_no_one(document: dict[str, object]) -> None:
    assert read_principal(document) == UNAUTHENTICATED
