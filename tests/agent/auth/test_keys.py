"""API keys: how they are made and kept, and the file of them that is read again when it changes."""

import logging
import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from beckon_agent.auth.authentication import KeyFile
from beckon_contract.api_keys import hash_of, new_entry, new_key, read_lines


def test_a_key_holds_thirty_two_random_bytes() -> None:
    made = {new_key() for _ in range(100)}

    assert len(made) == 100
    assert all(re.fullmatch(r"bk_[-_A-Za-z0-9]{43}", key) for key in made)


def test_the_stored_entry_of_a_key_is_read_again_and_does_not_hold_it() -> None:
    key = new_key()
    expires = datetime(2090, 1, 31, 12, tzinfo=UTC)

    entry = new_entry(key, "ci", ["ops", "dev"], expires)
    (read,), bad = read_lines(entry.line())

    assert (read, bad) == (entry, [])
    assert (read.name, read.expires) == ("ci", expires)
    assert read.groups == {"ops", "dev"}
    assert read.hash == hash_of(key)
    assert key.removeprefix("bk_") not in entry.line()


def test_empty_lines_and_comments_are_passed_over() -> None:
    entry = new_entry(new_key(), "ci")

    assert read_lines(f"# the build\n\n{entry.line()}\n   \n") == ([entry], [])


GOOD = '"hash": "sha256:' + "a" * 64 + '"'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("nonsense", "no JSON object"),
        ("[]", "no JSON object"),
        ("{" + GOOD + "}", "name must be"),
        ('{"name": "a b", ' + GOOD + "}", "name must be"),
        ('{"name": "", ' + GOOD + "}", "name must be"),
        ('{"name": "ci"}', "hash must be"),
        ('{"name": "ci", "hash": "bk_the-key-itself"}', "hash must be"),
        ('{"name": "ci", "hash": "sha256:' + "A" * 64 + '"}', "hash must be"),
        ('{"name": "ci", "groups": "ops", ' + GOOD + "}", "groups must be a list"),
        ('{"name": "ci", "groups": [""], ' + GOOD + "}", "a group must be"),
        ('{"name": "ci", "groups": [1], ' + GOOD + "}", "a group must be"),
        ('{"name": "ci", "expires": "soon", ' + GOOD + "}", "expires must be a time"),
        ('{"name": "ci", "expires": "2090-01-01T00:00:00", ' + GOOD + "}", "expires must be a time"),
        ('{"name": "ci", "expire": "2020-01-01T00:00:00Z", ' + GOOD + "}", "unknown field 'expire'"),
    ],
)
def test_a_line_that_is_no_key_is_reported_by_its_number_and_takes_no_other_with_it(
    line: str, why: str
) -> None:
    entry = new_entry(new_key(), "good")

    entries, (bad,) = read_lines(f"{entry.line()}\n{line}\n")

    assert entries == [entry]
    assert bad.number == 2
    assert bad.message.startswith(why)
    assert "bk_" not in bad.message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


def later(path: Path, text: str) -> None:
    """Replace the file as the kubelet does, by a link that is swapped."""
    target = path.with_name(f"keys-{time.monotonic_ns()}")
    target.write_text(text)
    link = path.with_name("next")
    link.symlink_to(target)
    link.replace(path)


def test_a_key_is_found_by_the_whole_of_it(file: Path) -> None:
    key = new_key()
    entry = new_entry(key, "ci", ["ops"])
    later(file, entry.line())
    keys = KeyFile(file, every=0)

    assert keys.find_key(key) == entry
    for wrong in (key[:-1], f"{key}A", key.swapcase(), f"{key[:-1]}{'A' if key[-1] != 'A' else 'B'}", ""):
        assert keys.find_key(wrong) is None
    assert keys.find_key(entry.hash) is None


def test_a_key_whose_time_is_over_is_not_found(file: Path) -> None:
    over, good = new_key(), new_key()
    now = datetime.now(UTC)
    late = new_entry(over, "late", expires=now - timedelta(seconds=1))
    valid = new_entry(good, "good", expires=now + timedelta(hours=1))
    later(file, f"{late.line()}\n{valid.line()}\n")
    keys = KeyFile(file, every=0)

    assert keys.find_key(over) is None
    assert keys.find_key(good) is not None


def test_a_file_that_changes_is_read_again(file: Path) -> None:
    first, second = new_key(), new_key()
    later(file, new_entry(first, "a").line())
    keys = KeyFile(file, every=0)
    assert keys.find_key(first)

    later(file, new_entry(second, "b").line())

    assert keys.find_key(first) is None
    assert keys.find_key(second)


def test_a_file_that_does_not_change_is_not_read_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    key = new_key()
    later(file, new_entry(key, "a").line())
    keys = KeyFile(file, every=0)

    for _ in range(5):
        assert keys.find_key(key)

    assert caplog.text.count("read 1 API keys") == 1


def test_two_keys_of_one_name_are_both_valid_while_one_replaces_the_other(file: Path) -> None:
    old, new = new_key(), new_key()
    later(file, f"{new_entry(old, 'ci').line()}\n{new_entry(new, 'ci').line()}")
    keys = KeyFile(file, every=0)

    assert [found.name for key in (old, new) if (found := keys.find_key(key))] == ["ci", "ci"]


def test_without_a_file_no_key_is_valid_and_the_log_says_so_once(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = new_key()
    keys = KeyFile(file, every=0)
    for _ in range(3):
        assert keys.find_key(key) is None
        assert caplog.text.count("cannot be read, so none is valid: No such file") == 1

    later(file, new_entry(key, "a").line())
    assert keys.find_key(key)

    file.unlink()
    assert keys.find_key(key) is None
    assert caplog.text.count("cannot be read") == 2


def test_what_is_no_list_of_keys_lets_no_one_in(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = new_key()
    file.write_bytes(b"\xff\xfe" + new_entry(key, "a").line().encode())
    assert KeyFile(file).find_key(key) is None
    assert KeyFile(file.parent).find_key(key) is None
    os.truncate(file, 5 * 1024 * 1024)
    assert KeyFile(file).find_key(key) is None

    assert caplog.text.count("so none is valid") == 3


def test_a_bad_line_is_logged_without_its_text(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    key = new_key()
    later(file, f'{{"name": "x", "hash": "{key}"}}\n{new_entry(key, "a").line()}')

    assert KeyFile(file).find_key(key)
    assert "line 1 is no valid key: hash must be" in caplog.text
    assert key not in caplog.text
