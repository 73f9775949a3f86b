"""Calls and imports with a person's sign-in, whose token is renewed when it ends."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from beckon_adapter.egress.hosts import Credential, Credentials, NoCredential
from beckon_adapter.mcp.tokens import SignIn
from beckon_runtime.egress import AllowedHost
from tests.adapter.mcp_tools import server
from tests.adapter.oauth_server import OAuthServer
from tests.adapter.plain_api import adapting, egress_to
from tests.adapter.test_mcp_servers import call_event, message
from tests.adapter.test_oauth import run_import, tool_of
from tests.serving import served
from tests.tools.serving import Caller

PERSON = OAuthClientInformationFull(client_id="registered", token_endpoint_auth_method="none")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tickets.token"


@asynccontextmanager
async def signed_in(
    oauth: OAuthServer, file: Path, *, expires_in: float | None = None, refresh_token: str | None = "first"
) -> AsyncIterator[str]:
    """Serve the MCP server with a sign-in for it in a file; yield its URL."""
    oauth.tokens.add("present")
    oauth.refresh_tokens |= {refresh_token} if refresh_token else set()
    async with served(oauth.app) as url:
        SignIn(
            resource=f"{url}/mcp",
            token_endpoint=f"{url}/token",
            client=PERSON,
            token=OAuthToken(access_token="present", refresh_token=refresh_token),
            expires_at=None if expires_in is None else time.time() + expires_in,
        ).write_to(file)
        yield url


@asynccontextmanager
async def calling(url: str, file: Path, tool: str = "add") -> AsyncIterator[Caller]:
    """Serve an adapter with a credential of the type login."""
    credential = Credential(name="tickets", hosts=(url,), type="login", file=file)
    egress = egress_to(AllowedHost(host=url, private=True), credentials=[credential])
    async with adapting(egress, tool_of(url, tool)) as adapter:
        yield adapter


async def test_a_valid_token_is_sent_as_it_is(file: Path) -> None:
    oauth = OAuthServer()
    async with signed_in(oauth, file, expires_in=3600) as url, calling(url, file) as adapter:
        found = await adapter.result(call_event({"a": 1, "b": 1}))

    assert found == {"result": 2}
    assert oauth.grants == []


async def test_an_ended_token_is_renewed_and_stored_for_the_next_start(file: Path) -> None:
    oauth = OAuthServer()
    async with signed_in(oauth, file, expires_in=-1) as url:
        for number in (1, 2):  # the adapter is started twice
            async with calling(url, file) as adapter:
                found = await adapter.result(call_event({"a": 1, "b": number}, f"call-{number}"))
            assert found == {"result": 1 + number}

    (grant,) = oauth.grants
    assert (grant["refresh_token"], grant["client_id"]) == ("first", "registered")
    assert grant["resource"] == f"{url}/mcp"
    stored = SignIn.from_file(file)
    assert stored.token.access_token in oauth.tokens
    assert stored.token.refresh_token in oauth.refresh_tokens
    assert stored.expires_at == pytest.approx(time.time() + 3600, abs=60)
    assert _is_private(file)


def _is_private(file: Path) -> bool:
    """Return True for a file that its owner alone may read, and that is alone in its folder."""
    return file.stat().st_mode & 0o777 == 0o600 and list(file.parent.iterdir()) == [file]


async def test_a_token_that_the_server_refuses_is_renewed(file: Path) -> None:
    oauth = OAuthServer()
    async with signed_in(oauth, file) as url, calling(url, file) as adapter:
        oauth.tokens.clear()
        found = await adapter.result(call_event({"a": 1, "b": 1}))

    assert found == {"result": 2}
    assert [grant["grant_type"] for grant in oauth.grants] == ["refresh_token"]


async def test_calls_side_by_side_renew_the_token_once(file: Path) -> None:
    oauth = OAuthServer()
    async with signed_in(oauth, file, expires_in=-1) as url, calling(url, file) as adapter:
        calls = [adapter.result(call_event({"a": 1, "b": n}, f"call-{n}")) for n in range(5)]
        found = await asyncio.gather(*calls)

    assert found == [{"result": 1 + n} for n in range(5)]
    assert len(oauth.grants) == 1


async def test_a_refresh_that_another_process_was_quicker_with_uses_its_token(file: Path) -> None:
    oauth = OAuthServer()
    async with signed_in(oauth, file, expires_in=-1) as url, calling(url, file) as adapter:

        def renew_elsewhere() -> None:
            oauth.tokens.add("elsewhere")
            oauth.refresh_tokens.clear()
            renewed = OAuthToken(access_token="elsewhere", expires_in=3600, refresh_token="second")
            SignIn.from_file(file).with_token(renewed).write_to(file)

        oauth.before_refresh = renew_elsewhere
        found = await adapter.result(call_event({"a": 1, "b": 1}))

    assert found == {"result": 2}
    assert SignIn.from_file(file).token.access_token == "elsewhere"


async def test_a_refresh_that_names_no_new_refresh_token_keeps_the_present_one(file: Path) -> None:
    async with signed_in(OAuthServer(), file):
        renewed = SignIn.from_file(file).with_token(OAuthToken(access_token="next"))

    assert (renewed.token.access_token, renewed.token.refresh_token) == ("next", "first")
    assert renewed.expires_at is None
    assert "next" not in repr(renewed)
    assert "first" not in repr(renewed)


Break = Callable[[OAuthServer, Path], Awaitable[None]]


async def _forget(oauth: OAuthServer, _: Path) -> None:
    oauth.refresh_tokens.clear()


async def _tear(_: OAuthServer, file: Path) -> None:
    await asyncio.to_thread(file.write_text, '{"resource": 1}')


@pytest.mark.parametrize(
    ("break_it", "refresh_token", "cause"),
    [
        (
            _forget,
            "first",
            "the credential 'tickets' is no longer valid; sign in again with: beckon import mcp",
        ),
        (_forget, None, "the credential 'tickets' is no longer valid; sign in again with: beckon import mcp"),
        (
            _tear,
            "first",
            "the file of the credential 'tickets' is no sign-in; write it with: beckon import mcp",
        ),
    ],
)
async def test_a_sign_in_that_cannot_be_used_is_an_error_of_the_call(
    file: Path, break_it: Break, refresh_token: str | None, cause: str
) -> None:
    oauth = OAuthServer()
    async with (
        signed_in(oauth, file, expires_in=-1, refresh_token=refresh_token) as url,
        calling(url, file) as adapter,
    ):
        await break_it(oauth, file)
        found = message(await adapter.result(call_event({"a": 1, "b": 1})))

    assert cause in found
    assert "present" not in found
    assert "first" not in found


async def test_a_sign_in_is_not_sent_as_a_bearer_token(file: Path) -> None:
    async with signed_in(OAuthServer(), file) as url:
        credentials = Credentials([Credential(name="tickets", hosts=(url,), file=file)])

        with pytest.raises(NoCredential, match="'tickets' is a sign-in: write type: login"):
            credentials.seal("tickets", httpx2.URL(url))


async def test_the_next_import_renews_the_token_of_the_last(file: Path) -> None:
    oauth = OAuthServer()
    oauth.lifetime = 1  # at its end from the first moment
    async with served(oauth.app) as url:
        results = [
            await run_import(url, *words, "--token-file", str(file)) for words in (("--login",), (), ())
        ]

    assert [status for status, _, _ in results] == [0, 0, 0], results
    assert [grant["grant_type"] for grant in oauth.grants][:3] == [
        "authorization_code",
        "refresh_token",
        "refresh_token",
    ]


async def test_an_import_with_an_ended_sign_in_names_the_cure(file: Path) -> None:
    async with signed_in(OAuthServer(), file, expires_in=-1, refresh_token=None) as url:
        status, _, errors = await run_import(url, "--token-file", str(file))

    assert status == 2
    (line,) = errors.splitlines()
    assert f"the sign-in in {file} is no longer valid; sign in again with: beckon import mcp URL" in line


async def test_a_server_without_a_sign_in_leaves_no_file(file: Path) -> None:
    async with served(server.streamable_http_app(json_response=True)) as url:
        status, printed, errors = await run_import(url, "--login", "--token-file", str(file))

    assert status == 0
    assert "tickets_add" in printed
    assert f"{url}/mcp required no sign-in: {file} is not written" in errors
    assert not await asyncio.to_thread(file.exists)


async def test_a_file_that_is_no_text_or_cannot_be_written_is_one_line(file: Path) -> None:
    await asyncio.to_thread(file.write_bytes, b"\xff\xfe")
    missing = file.parent / "nowhere" / "tickets.token"
    async with served(OAuthServer().app) as url:
        unreadable = await run_import(url, "--token-file", str(file))
        unwritable = await run_import(url, "--login", "--token-file", str(missing))

    assert (unreadable[0], unreadable[2]) == (
        2,
        f"beckon: --token-file {file} is neither a token nor a sign-in\n",
    )
    assert unwritable[0] == 1
    assert f"cannot read or write {missing.parent}" in unwritable[2].splitlines()[-1]
