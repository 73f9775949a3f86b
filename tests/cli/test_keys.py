"""`beckon keys`: made, listed and revoked as its user does it, and valid where the agent reads them.

Most of it runs in the test's process, for each start of the command line takes a second.
"""

import json
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from beckon_agent.auth.authentication import KeyFile
from beckon_cli.entry import app
from beckon_cli.errors import CommandError
from beckon_contract.api_keys import read_lines
from tests.cli.run_beckon import beckon


@dataclass(frozen=True)
class Ended:
    """What a command came to."""

    returncode: int
    stdout: str
    stderr: str


class Run(Protocol):
    """Runs `beckon keys`."""

    def __call__(self, *words: str) -> Ended:
        """Return what it came to."""
        ...


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def running(*words: str) -> Ended:
        capsys.readouterr()
        status, message = 0, ""
        try:
            app(["keys", *words], print_error=False, exit_on_error=False, result_action="return_none")
        except CommandError as error:
            status, message = error.status, f"beckon: {error}\n"
        except SystemExit as error:
            status = int(error.code or 0)
        printed = capsys.readouterr()
        return Ended(status, printed.out, printed.err + message)

    return running


@pytest.fixture
def make(run: Run) -> Callable[..., str]:
    def making(*words: str) -> str:
        ended = run("new", *words)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return making


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


def test_a_new_key_is_printed_with_the_line_to_keep_of_it(file: Path, make: Callable[..., str]) -> None:
    key, line = make("ci", "--group", "ops", "--group", "dev", "--days", "30").splitlines()
    file.write_text(line)

    found = KeyFile(file).find_key(key)

    assert found is not None
    assert (found.name, sorted(found.groups)) == ("ci", ["dev", "ops"])
    assert found.expires is not None
    assert abs(found.expires - datetime.now(UTC) - timedelta(days=30)) < timedelta(minutes=5)
    assert key.removeprefix("bk_") not in line


def test_with_a_file_only_the_key_is_printed_and_the_file_has_the_rest(
    file: Path, make: Callable[..., str]
) -> None:
    file.write_text("# by hand, and its last line has no end")
    first = make("a", "--file", str(file)).strip()
    second = make("a", "--group", "x", "--file", str(file)).strip()

    keys = KeyFile(file)
    assert [found.name for key in (first, second) if (found := keys.find_key(key))] == ["a", "a"]
    assert file.read_text().startswith("# by hand")
    assert first not in file.read_text()


def test_the_file_is_for_its_owner_alone_unless_it_was_not_before(
    file: Path, make: Callable[..., str]
) -> None:
    make("a", "--file", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    file.chmod(0o640)
    make("b", "--file", str(file))
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert list(file.parent.iterdir()) == [file]


def test_keys_are_listed_without_anything_that_opens_a_door(
    file: Path, make: Callable[..., str], run: Run
) -> None:
    file.touch()
    assert run("list", str(file)).stdout == "no keys\n"
    keys = [
        make(*words, "--file", str(file)).strip() for words in (["a"], ["b", "--group", "ops", "--days", "9"])
    ]

    plain, grouped = run("list", str(file)).stdout.splitlines()
    document = json.loads(run("list", str(file), "--json").stdout)

    assert plain.endswith("  a")
    assert "  b  ops  until 20" in grouped
    assert [entry["name"] for entry in document] == ["a", "b"]
    assert document[0]["id"] in plain
    assert document[0]["expires"] is None
    entries, _ = read_lines(file.read_text())
    shown = "\n".join([plain, grouped, json.dumps(document)])
    assert not any(secret in shown for secret in [*keys, *(entry.hash for entry in entries)])


def test_a_key_is_revoked_by_name_or_by_id_and_the_rest_stays_as_it_is(
    file: Path, make: Callable[..., str], run: Run
) -> None:
    file.write_text("# ours\n")
    old, new, other = (make(name, "--file", str(file)).strip() for name in ("ci", "ci", "other"))
    first = run("list", str(file)).stdout.splitlines()[0].split()[0]

    by_id = run("revoke", str(file), first)
    keys = KeyFile(file)
    assert (by_id.returncode, by_id.stdout) == (0, f"revoked {first} ci\n")
    assert [bool(keys.find_key(key)) for key in (old, new, other)] == [False, True, True]

    by_name = run("revoke", str(file), "ci")
    keys = KeyFile(file)
    assert by_name.returncode == 0
    assert [bool(keys.find_key(key)) for key in (old, new, other)] == [False, False, True]
    assert file.read_text().startswith("# ours\n")


def test_a_line_that_is_no_key_is_reported_and_stays_for_its_owner_to_mend(
    file: Path, make: Callable[..., str], run: Run
) -> None:
    make("ci", "--file", str(file))
    file.write_text(file.read_text() + "nonsense\n")

    ended = run("list", str(file))
    run("revoke", str(file), "ci")

    assert ended.returncode == 1
    assert "  ci" in ended.stdout
    assert f"{file} line 2 is no valid key: no JSON object" in ended.stderr
    assert file.read_text() == "nonsense\n"


@pytest.mark.parametrize(
    ("words", "says", "status"),
    [
        (["new", "a b"], "name must be 1 to 128 letters", 2),
        (["new", "a", "--days", "0"], "--days must be 1 to 36500", 2),
        (["new", "a", "--group", ""], "a group must be 1 to 253 printable", 2),
        (["new", "a", "--file", "/no/such/folder/keys"], "cannot write /no/such/folder/keys", 1),
        (["list", "/no/such/file"], "cannot read /no/such/file: No such file", 2),
        (["revoke", "/dev/null", "ci"], "there is no key 'ci' in /dev/null; see: beckon keys list", 1),
    ],
)
def test_wrong_use_is_one_line(run: Run, words: list[str], says: str, status: int) -> None:
    ended = run(*words)

    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr.count("\n") == 1
    assert says in ended.stderr


def test_the_command_line_has_keys_among_its_verbs(file: Path) -> None:
    ended = beckon("keys", "new", "ci", "--file", str(file))
    wrong = beckon("keys", "new")

    assert (ended.returncode, ended.stdout[:3]) == (0, "bk_")
    assert ended.stderr == f"the key is shown this once; its hash is in {file}\n"
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
