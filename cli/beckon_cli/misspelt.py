"""Settings that nothing reads, because their names are misspelt."""

import difflib
from collections.abc import Iterable, Iterator

from beckon_cli.settings_page import TABLES, names


def misspelt(given: Iterable[str]) -> Iterator[str]:
    """Yield a line for each name that begins like a setting of ours and is none."""
    known = {name for _, _, settings in TABLES for name, _ in names(settings)}
    for name in sorted(given):
        if name.startswith("BECKON_") and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield f"there is no setting {name}{hint}"
