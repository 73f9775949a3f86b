"""MCP servers that require a token: calls with a client's credentials, imports after a person's sign-in."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from beckon_adapter.egress.hosts import Credential
from beckon_adapter.mcp.tokens import SignIn
from beckon_cli.importing.mcp.sign_in import BrowserSignIn
from beckon_cli.importing.mcp.tools import NoServer, Place, list_server_tools
from beckon_contract.kubernetes_objects import Resource
from beckon_runtime.egress import AllowedHost
from tests.adapter.oauth_server import CLIENT_ID, SECRET, OAuthServer
from tests.adapter.plain_api import adapting, egress_to, event_type
from tests.adapter.test_mcp_servers import call_event, message
from tests.cli.run_beckon import beckon
from tests.serving import served
from tests.tools.serving import Caller


def tool_of(url: str, tool: str) -> Resource:
    made = event_type("{}")
    rule = f"{{server: '{url}/mcp', tool: {tool}, credential: tickets}}"
    return replace(made, annotations={"beckon.dev/mcp": rule})


@asynccontextmanager
async def calling(
    oauth: OAuthServer, secret_file: Path, tool: str = "add", issuer: str = ""
) -> AsyncIterator[Caller]:
    """Serve the MCP server, and an adapter with a credential of the type oauth."""
    async with served(oauth.app) as url:
        credential = Credential(
            name="tickets",
            hosts=(url,),
            type="oauth",
            issuer=issuer or url,
            file=secret_file,
        )
        egress = egress_to(AllowedHost(host=url, private=True), credentials=[credential])
        async with adapting(egress, tool_of(url, tool)) as adapter:
            yield adapter


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    file = tmp_path / "client"
    file.write_text(f"{CLIENT_ID}:{SECRET}\n")
    return file


async def test_a_call_gets_one_token_with_the_clients_credentials(secret_file: Path) -> None:
    oauth = OAuthServer()
    async with calling(oauth, secret_file) as adapter:
        found = [await adapter.result(call_event({"a": 1, "b": n}, f"call-{n}")) for n in (1, 2)]

    assert found == [{"result": 2}, {"result": 3}]
    assert {grant["grant_type"] for grant in oauth.grants} == {"client_credentials"}
    assert len(oauth.grants) == 1


async def test_calls_do_not_wait_for_each_other(secret_file: Path) -> None:
    oauth = OAuthServer()
    async with calling(oauth, secret_file, "slow") as adapter:
        calls = [adapter.result(call_event({"seconds": 0.5}, f"call-{n}")) for n in range(3)]
        await asyncio.gather(*calls)

    assert oauth.most_at_once > 1


async def test_a_token_that_is_no_longer_valid_is_replaced(secret_file: Path) -> None:
    oauth = OAuthServer()
    async with calling(oauth, secret_file) as adapter:
        await adapter.result(call_event({"a": 1, "b": 1}, "call-1"))
        oauth.tokens.clear()
        found = await adapter.result(call_event({"a": 1, "b": 2}, "call-2"))

    assert found == {"result": 3}
    assert len(oauth.grants) in (2, 3)  # the comparison of the tools may run beside the second call


async def test_the_secret_goes_to_its_issuer_only(secret_file: Path) -> None:
    oauth = OAuthServer()
    async with calling(oauth, secret_file, issuer="https://login.example.com") as adapter:
        found = await adapter.result(call_event({"a": 1, "b": 1}))

    assert "no token came for the credential 'tickets'" in message(found)
    assert SECRET not in message(found)
    assert oauth.grants == []


@pytest.mark.parametrize(
    ("content", "cause"),
    [("no-colon", "is not ID:SECRET"), (f"{CLIENT_ID}:wrong", "no token came for the credential 'tickets'")],
)
async def test_a_wrong_secret_is_an_error_of_the_call(secret_file: Path, content: str, cause: str) -> None:
    await asyncio.to_thread(secret_file.write_text, content)
    async with calling(OAuthServer(), secret_file) as adapter:
        found = message(await adapter.result(call_event({"a": 1, "b": 1})))
        await asyncio.to_thread(secret_file.write_text, f"{CLIENT_ID}:{SECRET}")
        corrected = await adapter.result(call_event({"a": 1, "b": 1}, "call-2"))

    assert cause in found
    assert "wrong" not in found
    assert corrected == {"result": 2}


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "oauth"},
        {"type": "bearer", "issuer": "https://a.example"},
        {"type": "oauth", "issuer": "a.example"},
    ],
)
def test_the_type_oauth_and_no_other_has_an_issuer(fields: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="issuer"):
        Credential.model_validate({"name": "a", "hosts": ["a.example"], "file": "/a", **fields})


BROWSER = {"BROWSER": "curl --silent --location --output /dev/null %s"}


async def run_import(url: str, *words: str) -> tuple[int, str, str]:
    """Run the import; the browser that it opens follows the redirects."""
    done = await asyncio.to_thread(
        beckon, "import", "mcp", f"{url}/mcp", "--name", "tickets", "--list", *words, settings=BROWSER
    )
    return done.returncode, done.stdout, done.stderr


async def test_a_person_signs_in_to_import_and_the_token_is_written_for_the_next_time(tmp_path: Path) -> None:
    oauth, file = OAuthServer(), tmp_path / "token"
    async with served(oauth.app) as url:
        status, printed, errors = await run_import(url, "--login", "--token-file", str(file))
        again, same, _ = await run_import(url, "--token-file", str(file))

    assert status == again == 0, errors
    assert "tickets_add" in printed
    assert same == printed
    assert f"Sign in at {url}/authorize?" in errors
    assert SignIn.from_file(file).token.access_token in oauth.tokens
    assert file.stat().st_mode & 0o777 == 0o600
    (client,) = oauth.registered
    assert client["client_name"] == "Beckon"
    assert [grant["grant_type"] for grant in oauth.grants] == ["authorization_code"]


async def test_a_client_id_of_ones_own_is_not_registered_again() -> None:
    oauth = OAuthServer()
    async with served(oauth.app) as url:
        status, _, errors = await run_import(url, "--login", "--client-id", "beckon-cli")

    assert status == 0, errors
    assert oauth.registered == []
    assert oauth.grants[0]["client_id"] == "beckon-cli"


async def test_without_a_valid_credential_the_error_names_the_status_and_the_flags(tmp_path: Path) -> None:
    oauth, file = OAuthServer(), tmp_path / "token"
    file.write_text("old")
    async with served(oauth.app) as url:
        results = [await run_import(url), await run_import(url, "--token-file", str(file))]
        oauth.refused = True
        results.append(await run_import(url, "--login"))

    assert [status for status, _, _ in results] == [2, 2, 2]
    for _, _, errors in results[:2]:
        assert "requires other credentials (401): send a bearer token with --token-file FILE" in errors
        assert len(errors.splitlines()) == 1
    place, refusal = results[2][2].splitlines()
    assert place.startswith("Sign in at ")
    assert "did not accept the sign-in" in refusal
    assert "access_denied" in refusal


async def test_a_browser_that_does_not_return_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beckon_cli.importing.mcp.sign_in.SIGN_IN_SECONDS", 0.0)
    monkeypatch.setenv("BROWSER", "true")
    async with served(OAuthServer().app) as url:
        place = Place(url=f"{url}/mcp")
        with (
            BrowserSignIn(place.url) as sign_in,
            pytest.raises(NoServer, match="did not accept the sign-in: the browser did not return within 0 "),
        ):
            await list_server_tools(place, sign_in.auth)


@pytest.mark.parametrize(
    "words", [("--login", "--", "python"), ("--client-id", "beckon", "https://mcp.example.com/mcp")]
)
def test_the_flags_of_a_sign_in_are_for_a_url(words: tuple[str, ...]) -> None:
    done = beckon("import", "mcp", "--list", *words)

    assert done.returncode == 2
    assert "--login is for a URL, and --client-id for --login" in done.stderr
