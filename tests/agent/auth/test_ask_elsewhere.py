"""`beckon ask` and `beckon chat` at an agent elsewhere: its URL, its name, and its key."""

import asyncio
import os
import pty
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from beckon_contract.api_keys import new_entry, new_key
from beckon_runtime.certificates import server_context
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import says
from tests.certified import Certified
from tests.cli.run_beckon import beckon
from tests.e2e.local_platform import clean_environment
from tests.e2e.terminal import Terminal

pytestmark = pytest.mark.asyncio(loop_scope="module")

USER_KEY = new_key()
SECONDS = 30


@pytest_asyncio.fixture(loop_scope="module")
async def service(
    platform: EventPlatform, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[ClosedService]:
    """A service with two agents, closed by a file of keys."""
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text(new_entry(USER_KEY, "ada").line() + "\n")
    async with (
        aiohttp.ClientSession() as session,
        closed_service(
            platform,
            {"first": terms(), "second": terms()},
            make_authenticator(AccessOptions(host="0.0.0.0", keys_file=keys), session),
        ) as made,
    ):
        yield made


async def run(
    *words: str, key: str = "", given: str = "", cwd: Path | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    settings |= {"BECKON_API_KEY": key} if key else {}
    return await asyncio.to_thread(beckon, *words, settings=settings, given=given, cwd=cwd)


async def test_a_question_goes_to_the_agent_that_is_named(service: ClosedService) -> None:
    service.model.script[:] = [says("Good day."), says("Again.")]
    url = str(service.http.base_url)

    named = await run("ask", "--url", url, "--agent", "second", "hello", key=USER_KEY)
    stored = await run("ask", "--url", url, "--agent", "second", "--stored", "hello", key=USER_KEY)
    listed = await run("ask", "--url", url, "--agent", "third", "hello", key=USER_KEY)
    runs = await service.http.get("/runs?agent=second", headers={"authorization": f"Bearer {USER_KEY}"})

    assert (named.returncode, named.stdout) == (0, "Good day.\n")
    assert (stored.returncode, stored.stdout) == (0, "Again.\n")
    assert [run["question"] for run in runs.json()["data"]] == ["hello"]
    assert (listed.returncode, listed.stderr) == (
        2,
        "beckon: there is no agent 'third'; choose one of: first, second\n",
    )


async def test_a_refused_key_is_an_error_and_starts_no_platform(service: ClosedService) -> None:
    url = str(service.http.base_url)

    without = await run("ask", "--url", url, "hello")
    wrong = await run("chat", "--url", url, key=new_key(), given="hello\n")

    for printed in (without, wrong):
        assert printed.returncode == 1
        assert printed.stderr.count("\n") == 1
        assert "BECKON_API_KEY" in printed.stderr
        assert USER_KEY not in printed.stderr


@pytest.mark.parametrize(
    "url", ["agent.example", "ftp://agent.example", "http://", "http://u:p@h", "http://[", "http://h?x=1"]
)
async def test_what_is_no_url_is_refused_in_one_line(url: str, tmp_path: Path) -> None:
    printed = await run("ask", "--url", url, "hello", cwd=tmp_path)

    assert printed.returncode == 2
    assert printed.stderr == "beckon: --url is no URL of an agent; write for instance https://agent.example\n"


@pytest.mark.parametrize(
    ("url", "cure"),
    [("http://127.0.0.1:9", "start one: beckon up"), ("http://agent.invalid", "check the URL")],
)
async def test_an_agent_that_does_not_answer_is_not_replaced_by_a_local_one(
    url: str, cure: str, tmp_path: Path
) -> None:
    printed = await run("ask", "--url", url, "hello", cwd=tmp_path)

    assert printed.returncode == 1
    assert printed.stderr.startswith(f"beckon: no agent answers at {url} (")
    assert cure in printed.stderr
    assert printed.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("host", "cause"),
    [
        ("127.0.0.1", "unable to get local issuer certificate; to trust its authority, set SSL_CERT_FILE"),
        ("127.0.0.2", "certificate is not valid for '127.0.0.2'\n"),
    ],
)
async def test_a_certificate_that_is_not_trusted_is_the_cause(host: str, cause: str, tmp_path: Path) -> None:
    certified = Certified.issue(tmp_path)
    authority = tmp_path / "ca.crt"
    authority.write_bytes(certified.authority.cert_pem.bytes())
    context = server_context()
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    server = await asyncio.start_server(lambda *_: None, host, ssl=context)
    port = server.sockets[0].getsockname()[1]
    trusted = {"SSL_CERT_FILE": str(authority)} if "not valid" in cause else {}
    async with server:
        printed = await run("ask", "--url", f"https://{host}:{port}", "hello", cwd=tmp_path, **trusted)

    assert printed.returncode == 1
    assert printed.stderr.startswith(f"beckon: the certificate of https://{host}:{port} cannot be trusted: ")
    assert cause in printed.stderr
    assert printed.stderr.count("\n") == 1


async def test_a_terminal_is_prompted_for_the_key_and_shows_the_commands(service: ClosedService) -> None:
    service.model.script[:] = [says("Good day.")]

    assert await asyncio.to_thread(_chat_on_a_terminal, str(service.http.base_url)) == 0


async def test_the_end_of_input_instead_of_a_key_is_one_line(service: ClosedService) -> None:
    status, shown = await asyncio.to_thread(_no_key_on_a_terminal, str(service.http.base_url))

    assert status == 2
    assert "beckon: no API key; type one, or set BECKON_API_KEY" in shown
    assert "Traceback" not in shown


def _no_key_on_a_terminal(url: str) -> tuple[int, str]:
    pid, terminal = _start_chat(url)
    try:
        terminal.read_until(f"API key for {url}: ", SECONDS)
        terminal.type(b"\x04")
        shown = terminal.read_until("BECKON_API_KEY", SECONDS)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal.descriptor)
    return os.waitstatus_to_exitcode(status), shown


def _start_chat(url: str) -> tuple[int, Terminal]:
    pid, descriptor = pty.fork()
    if pid == 0:
        program = str(Path(sys.executable).parent / "beckon")
        os.execvpe(program, [program, "chat", "--url", url], clean_environment({"TERM": "xterm"}))
    return pid, Terminal(descriptor)


def _chat_on_a_terminal(url: str) -> int:
    pid, terminal = _start_chat(url)
    try:
        terminal.read_until(f"API key for {url}: ", SECONDS)
        terminal.type(USER_KEY.encode() + b"\n")
        shown = terminal.read_until("you>", SECONDS)
        terminal.type(b"/help\n")
        helped = terminal.read_until("/quit ", SECONDS)
        terminal.read_until("you>", SECONDS)
        terminal.type(b"hello\n")
        terminal.read_until("Good day.", SECONDS)
        terminal.read_until("you>", SECONDS)
        terminal.type(b"/quit\n")
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(terminal.descriptor)
    assert USER_KEY not in shown
    assert all(command in helped for command in ("/new ", "/help ", "/quit "))
    return os.waitstatus_to_exitcode(status)
