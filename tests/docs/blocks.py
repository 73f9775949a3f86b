"""The code blocks of the docs, and how the word after the language marks what a test does with one.

    console             every `$ ` line is run beside a platform; its output must show the text below it
    console up          its output is that of the platform which the tests share
    console setup       run before that platform starts
    console first       run by a test of its own, on a project as it was just made
    console not-run     only looked at: the verbs, flags, targets and modules must exist
    console cluster     commands for a cluster, which `make test` has not
    console release     commands that install a release; run from an index and a registry on loopback
    python              run on its own; it only declares
    python beside       a file that imports the others of its page
    python run          run beside the platform; `text output` below it is what it prints
    yaml                manifests in which `beckon check` finds no error
    yaml fragment       a part of one
    yaml mistake        manifests in which it finds some
    json written        parameters as an author writes them; `json becomes` below it is what they mean
    http                an HTTP message that is a CloudEvent
    http stream         an HTTP answer whose server-sent events are CloudEvents

`file=NAME` beside any of these puts the block into a file where the page's commands are run. In expected
output `…` matches anything.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md")),
    ROOT / "charts" / "beckon" / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
)
KINDS = {
    "console": {"", "up", "setup", "first", "not-run", "cluster", "release"},
    "python": {"", "beside", "run"},
    "text": {"output"},
    "yaml": {"", "fragment", "mistake"},
    "json": {"written", "becomes"},
    "http": {"", "stream"},
    "": {""},  # a drawing
}
_FENCE = re.compile(r"^```(.*)\n((?:(?!^```).*\n)*)^```$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: where it is, its language, its mark, the file it belongs into, its text."""

    page: Path
    line: int
    language: str
    mark: str
    file: str
    text: str

    def __str__(self) -> str:
        """Return where it is."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """The commands of a console block, each with the lines that stand below it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            elif line.strip():
                found[-1][1].append(line)
        return found


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    """Return the blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    return tuple(_block(page, text, found) for found in _FENCE.finditer(text))


def every_block(language: str, *marks: str) -> list[Block]:
    """Return the blocks of all pages that have this language and one of these marks."""
    found = [block for page in PAGES for block in blocks(page)]
    return [block for block in found if block.language == language and block.mark in marks]


def commands_of(page: Path, mark: str) -> list[str]:
    """Return the commands in the console blocks of a page that have this mark."""
    found = [block for block in blocks(page) if (block.language, block.mark) == ("console", mark)]
    return [command for block in found for command, _ in block.commands]


def prose(page: Path) -> str:
    """Return a page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the rows, as cells, of every table of a page whose first column has this heading."""
    rows: list[list[str]] = []
    inside = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"| {heading} |"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("| ---"):
            rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def _block(page: Path, text: str, found: re.Match[str]) -> Block:
    language, *words = found[1].split() or [""]
    file = next((word.removeprefix("file=") for word in words if word.startswith("file=")), "")
    mark = " ".join(word for word in words if not word.startswith("file="))
    return Block(page, text.count("\n", 0, found.start()) + 1, language, mark, file, found[2])
