"""`beckon keys`: API keys for an agent; only hashes are stored.

The keys are for the people and programs that use the agent.
"""

import tempfile
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.text import Text

from beckon_cli.errors import CommandError
from beckon_cli.output import err, out, print_json
from beckon_contract.api_keys import KeyEntry, new_entry, new_key, read_lines

keys = App(name="keys", help="Create, list and revoke API keys; the agent reads their hashes from a file.")

_MOST_DAYS = 36_500


@keys.command
def new(
    name: str,
    /,
    *,
    group: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    days: int | None = None,
    file: Path | None = None,
) -> None:
    """Make a key, and print it this once; without --file, the line to keep of it follows.

    The agent reads the lines from the file of BECKON_KEYS_FILE, in a cluster a Secret. Agents name
    the key in their rules as key:NAME, and its groups. A key is replaced by another one of the same
    name, and the old one revoked by its id.

    Parameters
    ----------
    name
        Whom or what the key is for.
    group
        A group that it belongs to; may be given several times.
    days
        How long it is valid; without this, until it is revoked.
    file
        Add its line to this file.
    """
    if days is not None and not 1 <= days <= _MOST_DAYS:
        raise CommandError(f"--days must be 1 to {_MOST_DAYS}", status=2)
    expires = None if days is None else datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
    key = new_key()
    try:
        entry = new_entry(key, name, group, expires)
    except ValueError as error:
        raise CommandError(str(error), status=2) from None
    if file is not None:
        text = _read_text(file) if file.exists() else ""
        _write_file(file, f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}{entry.line()}\n")
    print(key)
    if file is None:
        print(entry.line())
        err.print("the first line is the key, shown this once; the second is what the agent keeps of it")
    else:
        err.print(f"the key is shown this once; its hash is in {file}")


@keys.command(name="list")
def list_(file: Path, /, *, json: bool = False) -> None:
    """Print the keys of a file: ids, names, groups, and how long they are valid.

    Parameters
    ----------
    file
        The file of the agent's keys.
    json
        Print one JSON document instead.
    """
    entries, bad = read_lines(_read_text(file))
    if json:
        print_json([_entry_document(entry) for entry in entries])
    else:
        _print_entries(entries)
    for line in bad:
        err.print(f"{file} line {line.number} is no valid key: {line.message}")
    if bad:
        raise SystemExit(1)


@keys.command
def revoke(file: Path, which: str, /) -> None:
    """Take keys out of a file: all of a name, or one by its id.

    The agent refuses them as soon as it sees the file; a Secret takes up to a minute to arrive.

    Parameters
    ----------
    file
        The file of the agent's keys.
    which
        A name, or an id as `beckon keys list` prints it.
    """
    remaining, gone = _without_keys(_read_text(file), lambda entry: which in (entry.name, entry.id))
    if not gone:
        raise CommandError(f"there is no key {which!r} in {file}; see: beckon keys list {file}")
    _write_file(file, remaining)
    for entry in gone:
        print(f"revoked {entry.id} {entry.name}")


def _without_keys(text: str, meant: Callable[[KeyEntry], bool]) -> tuple[str, Sequence[KeyEntry]]:
    """Return the text without the matching keys, and these keys.

    All other lines stay unchanged.
    """
    remaining: list[str] = []
    gone: list[KeyEntry] = []
    for line in text.splitlines(keepends=True):
        entries, _ = read_lines(line)
        if entries and meant(entries[0]):
            gone.append(entries[0])
        else:
            remaining.append(line)
    return "".join(remaining), gone


def _entry_document(entry: KeyEntry) -> dict[str, object]:
    return {
        "id": entry.id,
        "name": entry.name,
        "groups": sorted(entry.groups),
        "expires": entry.expires,
        "expired": entry.expired(datetime.now(UTC)),
    }


def _print_entries(entries: Sequence[KeyEntry]) -> None:
    now = datetime.now(UTC)
    for entry in entries:
        until = f"  until {entry.expires:%Y-%m-%d %H:%M %Z}" if entry.expires else ""
        over = "  expired" if entry.expired(now) else ""
        groups = f"  {', '.join(sorted(entry.groups))}" if entry.groups else ""
        out.print(Text.assemble(entry.id, "  ", (entry.name, "bold"), groups, (until, "dim"), (over, "red")))
    if not entries:
        out.print("no keys")


def _read_text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"cannot read {file}: {reason}", status=2) from None


def _write_file(file: Path, text: str) -> None:
    """Replace a key file atomically.

    A concurrent reader finds the old keys or the new ones. Raises `CommandError` if it cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(dir=file.parent, prefix=".keys-") as folder:
            written = Path(folder) / file.name
            written.touch(mode=file.stat().st_mode & 0o777 if file.exists() else 0o600)
            written.write_text(text, "utf-8")
            written.replace(file)
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error.strerror}") from None
