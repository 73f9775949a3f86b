"""Tables for a terminal and a page alike: Markdown with aligned columns."""

from collections.abc import Sequence


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is aligned left, the others right."""
    widths = [max(len(row[number]) for row in (columns, *rows)) for number in range(len(columns))]
    print(f"\n**{title}**\n")
    print(_line(columns, widths))
    print("| " + " | ".join("-" * (width - bool(n)) + ":" * bool(n) for n, width in enumerate(widths)) + " |")
    for row in rows:
        print(_line(row, widths))
    print(flush=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    aligned = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "| " + " | ".join(aligned) + " |"
