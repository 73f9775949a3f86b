"""The report of an import, for people and for programs."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from beckon_cli.importing.candidates import Found, Skipped, Tool
from beckon_cli.importing.differences import Difference
from beckon_cli.importing.files import Changes
from beckon_cli.importing.needs import credential_parts, hosts_of, required_settings

_COLOURS = {"added": "green", "changed": "yellow", "removed": "red"}


def list_items(found: Found[Tool]) -> Iterator[Text]:
    """Yield a line for each chosen item and server, then the counts."""
    for each in found.results:
        what = f"{each.what}  [{', '.join(each.tags)}]" if each.tags else each.what
        if isinstance(each, Skipped):
            yield _skipped_line(what, each.reason)
        else:
            said = f"  {each.description.splitlines()[0][:80]}"
            yield Text.assemble((each.name, "bold cyan"), f"  {what}", (said, "dim"))
    for number, server in enumerate(found.servers, start=1):
        yield Text(f"server {number}  {server or '(none)'}")
    yield Text(count_outcomes(found))


def report_import(found: Found[Tool], changes: Changes | None) -> Iterator[Text]:
    """Yield the report of an import as lines.

    They are the files, the skipped items, the counts, and the settings required of the adapter's owner.
    """
    for what, style in _COLOURS.items() if changes else ():
        for name in getattr(changes, what):
            yield Text.assemble((f"{what:<9}", style), name)
    for skipped in found.skipped:
        yield _skipped_line(skipped.what, skipped.reason)
    yield Text(count_outcomes(found, changes))
    yield from required_settings(found)


def count_outcomes(found: Found[Tool], changes: Changes | None = None) -> str:
    """Return the number of items and of each outcome, in one line."""
    chosen = f" ({len(found.results)} chosen)" if len(found.results) < len(found.present) else ""
    line = f"{_thing_names(found)}{chosen}, {len(found.tools)} imported, {len(found.skipped)} skipped"
    if changes is None:
        return line
    done = [(len(getattr(changes, what)), what) for what in ("added", "changed", "unchanged", "removed")]
    return f"{line}; files: {', '.join(f'{count} {what}' for count, what in done)}"


def report_document(found: Found[Tool], changes: Changes | None = None) -> dict[str, object]:
    """Return the report as a JSON document, for programs.

    The key for an item's name at the source depends on the importer: it is `found.noun`.
    """
    return {
        "title": found.title,
        "servers": list(found.servers),
        "tools": [
            {
                "name": each.name,
                found.noun: each.what,
                **each.details,
                "tags": list(each.tags),
                "description": each.description,
                "notes": list(each.notes),
            }
            for each in found.tools
        ],
        "skipped": [{found.noun: each.what, "reason": each.reason} for each in found.skipped],
        "hosts": hosts_of(found),
        "credentials": {
            name: [str(part) for part in parts] for name, parts in credential_parts(found).items()
        },
        **({"files": {what: getattr(changes, what) for what in Changes.__slots__}} if changes else {}),
    }


def list_differences(found: Found[Tool], changed: Sequence[Difference]) -> Iterator[Text]:
    """Yield a line for each difference from a folder, then their number."""
    for each in changed:
        yield Text.assemble((f"{each.state:<9}", "yellow"), each.what, f": {each.how}" if each.how else "")
    yield Text(f"{_thing_names(found)}, {len(changed)} differ")


def differences_document(found: Found[Tool], changed: Sequence[Difference]) -> dict[str, object]:
    """Return the differences as a JSON document, for programs."""
    lines = [{"difference": each.state, found.noun: each.what, "how": each.how} for each in changed]
    return {"title": found.title, "differences": lines}


def _thing_names(found: Found[Tool]) -> str:
    all_of = len(found.present)
    return f"{found.title}: {all_of} {found.noun}{'' if all_of == 1 else 's'}"


def _skipped_line(what: str, reason: str) -> Text:
    return Text.assemble(("skipped  ", "yellow"), f"{what}: {reason}")
