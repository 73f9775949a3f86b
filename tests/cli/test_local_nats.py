"""NATS for the local platform: what is wrong is one line, and what it is started with fits the broker."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from beckon_cli.errors import CommandError
from beckon_cli.local import nats
from beckon_cli.local.plan import Addresses, core_programs, for_tools
from beckon_cli.local.ports import answers
from beckon_cli.settings import Settings, child_environment
from tests.cli.run_beckon import beckon
from tests.nats_server import NatsServer

URL = "nats://127.0.0.1:4333"
SECRET = "hunter2"
GIVEN = f"nats://me:{SECRET}@one:4222, tls://two"


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program with the right name on PATH, which nothing starts."""
    program = tmp_path / "bin" / "nats-server"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    return program


def test_without_the_program_durable_names_the_cure_in_one_line(tmp_path: Path) -> None:
    settings = {"PATH": str(tmp_path), "BECKON_MANIFESTS": str(tmp_path)}

    done = beckon("up", "--durable", cwd=tmp_path, settings=settings)

    assert done.returncode == 2
    assert done.stderr == (
        "beckon: --durable needs nats-server, which is not on PATH: install it (Debian: apt-get install "
        "nats-server; others: nats.io/download), or name a running server in BECKON_NATS_URL\n"
    )


@pytest.mark.parametrize(
    "value", ["4222", "nats//host", f"http://me:{SECRET}@host", "nats://host:0", "nats://a,"]
)
def test_an_address_that_is_none_is_refused_without_showing_it(tmp_path: Path, value: str) -> None:
    done = beckon("up", cwd=tmp_path, settings={"BECKON_NATS_URL": value})

    assert done.returncode == 2
    assert done.stderr == (
        "beckon: BECKON_NATS_URL: it has a part that is no address; write for instance "
        "nats://127.0.0.1:4222\n"
    )


@pytest.mark.usefixtures("on_path")
def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(CommandError, match=r"^cannot write .*/file/nats: Not a directory; start beckon in"):
        nats.server_program(URL, {}, tmp_path / "file" / "nats")


def test_one_platform_at_a_time_uses_a_folder(
    on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats, "_LOCK_SECONDS", 0)
    (lock,) = nats.server_program(URL, {}, tmp_path / "nats").files
    reader, writer = os.pipe()
    heir = subprocess.Popen([sys.executable, "-c", "input()"], pass_fds=[lock], stdin=reader)
    os.close(lock)
    os.close(reader)

    with pytest.raises(
        CommandError, match=r"^another platform uses .*/nats: stop it, or start this one in"
    ) as error:
        nats.server_program(URL, {}, tmp_path / "nats")
    os.close(writer)
    heir.wait()
    program = nats.server_program(URL, {}, tmp_path / "nats")

    assert error.value.status == 2
    assert program.command[0] == str(on_path)
    os.close(program.files[0])


@pytest.mark.parametrize(
    ("setting", "payload"),
    [("", 8388608), ("no number", 8388608), ("1048576", 8388608), ("9000000", 9262144)],
)
@pytest.mark.usefixtures("on_path")
def test_the_server_takes_events_as_large_as_the_broker(tmp_path: Path, setting: str, payload: int) -> None:
    program = nats.server_program(URL, {"BECKON_MAX_EVENT_BYTES": setting}, tmp_path / "später" / "nats")

    written = json.loads(Path(program.command[-1]).read_text())
    assert written["listen"] == "127.0.0.1:4333"
    assert written["max_payload"] == payload
    os.close(program.files[0])


def test_the_broker_alone_gets_the_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BECKON_NATS_URL", GIVEN)
    settings, environment = Settings(), child_environment()

    programs = core_programs(
        settings, Addresses("http://a:1", *(f"http://b:{n}" for n in (2, 3, 4))), tmp_path, environment
    )

    assert SECRET not in repr(settings)
    assert SECRET not in repr(for_tools(environment))
    assert [program.name for program in programs if GIVEN in program.environment.values()] == ["broker"]


def test_an_address_is_shown_without_its_password() -> None:
    assert nats.show_addresses(GIVEN) == "nats://one:4222, tls://two"


async def test_a_server_answers_when_it_greets(nats_server: NatsServer, unused_tcp_port: int) -> None:
    absent = f"nats://127.0.0.1:{unused_tcp_port}"

    assert await answers(nats_server.url)
    assert not await answers(absent)
    assert await nats.find_silent(f"nats://me:{SECRET}@127.0.0.1:{unused_tcp_port}") == absent
    assert not await nats.find_silent(f"{absent},{nats_server.url}")
    assert not await nats.find_silent("ws://127.0.0.1:1")
    assert not await nats.find_silent("")
