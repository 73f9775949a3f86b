"""The site of the docs: `python -m supply_chain.site FOLDER [--source URL]`.

Pages are those of `docs/`, and the Markdown files of the root that they link to. A copy of them is built by
Zensical, with search; the navigation is the index, `docs/README.md`. Links that leave the pages become
addresses below `--source`, or plain text without one. Each local link of the built pages is followed. One
that leads nowhere ends the build with exit code 2.

The site of a version is in a folder of its own. The others that are there stay, and a reader selects one.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from urllib.parse import unquote, urlsplit

from packaging.version import InvalidVersion, Version

from supply_chain.packages import ROOT
from supply_chain.release import BadRelease, current_version

_INDEX = "docs/README.md"
_DECISIONS = "docs/decisions"
_ROOT_PAGES = ("README.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md")
_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\(([^)\s]+)\)")
_IMAGE = re.compile(r"(!\[[^\]]*\]\(|<img [^>]*src=\"|<source [^>]*srcset=\")([^)\s\"]+)")
_PICTURE = re.compile(r'<picture><source [^>]*srcset="([^"]+)"><img src="([^"]+)"([^>]*)></picture>')
_FENCE = re.compile(r"^( *(?:```|~~~)\w*).*")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


def list_pages() -> dict[str, str]:
    """Return each page of the site by its file in the repository, both as POSIX paths."""
    docs = sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / _DECISIONS).glob("*.md"))
    pages = {path.relative_to(ROOT).as_posix(): path.relative_to(ROOT / "docs").as_posix() for path in docs}
    pages |= {name: name.lower() for name in _ROOT_PAGES}
    pages |= {_INDEX: "index.md", _DECISIONS: "decisions/index.md"}
    return pages


def rewrite_page(text: str, file: str, pages: dict[str, str], source: str) -> str:
    """Return the text of a file with links that hold on the site. Blocks of code stay as they are."""
    lines, is_code = [], False
    for line in text.split("\n"):
        if fence := _FENCE.match(line):
            is_code = not is_code
            lines.append(fence[1])  # without the marks for the tests of the docs
        else:
            lines.append(line if is_code else _rewrite_line(line, file, pages, source))
    return "\n".join(lines)


def _rewrite_line(line: str, file: str, pages: dict[str, str], source: str) -> str:
    here = PurePosixPath(pages[file]).parent

    def resolve(target: str) -> tuple[str, str]:
        path, _, anchor = target.partition("#")
        return normpath(PurePosixPath(file).parent / path), f"#{anchor}" if anchor else ""

    def move_link(found: re.Match[str]) -> str:
        text, target = found[1], found[2]
        if target.startswith(("#", "http:", "https:", "mailto:")):
            return found[0]
        path, anchor = resolve(target)
        if page := pages.get(path):
            return f"[{text}]({relpath(page, here)}{anchor})"
        return f"[{text}]({source}/{path}{anchor})" if source else text

    def move_image(found: re.Match[str]) -> str:
        path, _ = resolve(found[2])
        return found[1] + relpath(PurePosixPath(path).relative_to("docs"), here)

    moved = _LINK.sub(move_link, _IMAGE.sub(move_image, line))
    # The theme shows each by the colours of the page, which a reader may switch.
    return _PICTURE.sub(r'<img src="\2#only-light"\3><img src="\1#only-dark"\3>', moved)


def read_navigation(pages: dict[str, str]) -> list[dict[str, object]]:
    """Return the groups of the index with their pages, each page once, in its order."""
    groups: list[dict[str, object]] = [{"Overview": "index.md"}]
    seen = {"index.md"}
    for part in (ROOT / _INDEX).read_text(encoding="utf-8").split("\n## ")[1:]:
        title, _, body = part.partition("\n")
        found = []
        for _, target in _LINK.findall(body):
            page = pages.get(normpath(PurePosixPath(_INDEX).parent / target.partition("#")[0]))
            if page is not None and page not in seen:
                seen.add(page)
                found.append(page)
        groups.append({title.strip(): found})
    return groups


def add_version(folder: Path, source: str) -> Path:
    """Build the site of the current version, and return its folder; raise `BadRelease`.

    `versions.json` of the folder lists all versions that are there, in the form of mike, which the theme
    reads. The page of the folder itself leads to the newest release, or to a candidate if there is no other.
    """
    built = build_site(folder / current_version(), source)
    versions = sorted(_find_versions(folder), reverse=True)
    newest = max(versions, key=lambda one: (not one.is_prerelease, one))
    listed = [
        {"version": str(one), "title": str(one), "aliases": ["latest"] if one == newest else []}
        for one in versions
    ]
    (folder / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    (folder / "index.html").write_text(
        f'<!doctype html><meta charset="utf-8"><title>Beckon</title>'
        f'<meta http-equiv="refresh" content="0; url={newest}/"><a href="{newest}/">Beckon {newest}</a>\n',
        encoding="utf-8",
    )
    return built


def _find_versions(folder: Path) -> Iterator[Version]:
    for page in folder.glob("*/index.html"):
        with suppress(InvalidVersion):
            yield Version(page.parent.name)


def build_site(folder: Path, source: str) -> Path:
    """Build the site into a folder, which is made anew; raise `BadRelease`."""
    if source and not re.fullmatch(r"https://[^\s()]+[^\s()/]", source):
        raise BadRelease(f"{source!r} is no address of the sources; write one such as https://git.example/v1")
    pages = list_pages()
    with tempfile.TemporaryDirectory(prefix="beckon-site-") as place:
        staged = Path(place)
        for file, page in pages.items():
            text = _list_decisions() if file == _DECISIONS else (ROOT / file).read_text(encoding="utf-8")
            target = staged / "docs" / page
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(rewrite_page(text, file, pages, source), encoding="utf-8")
        shutil.copytree(ROOT / "docs" / "images", staged / "docs" / "images")
        (staged / "zensical.toml").write_text(_configuration(pages), encoding="utf-8")
        # Not `--strict`, which knows no anchors of HTML: the links are followed below.
        command = (str(Path(sys.executable).with_name("zensical")), "build")
        done = subprocess.run(  # noqa: S603  # its words are ours
            command, cwd=staged, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            lines = (done.stdout + done.stderr).strip().splitlines()
            raise BadRelease(f"the site cannot be built: {' '.join(lines[-3:])}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(staged / "site", folder)
    if broken := sorted(find_broken_links(folder)):
        raise BadRelease(f"{len(broken)} links of the site lead nowhere: {'; '.join(broken[:10])}")
    return folder


def _list_decisions() -> str:
    entries = []
    for path in sorted((ROOT / _DECISIONS).glob("*.md")):
        title = _HEADING.search(path.read_text(encoding="utf-8"))
        entries.append(f"- [{title[1] if title else path.stem}]({path.name})")
    # The path is that of a file in the folder: its links are relative to the folder's parent.
    listed = "\n".join(entry.replace("](", "](decisions/") for entry in entries)
    return f"# The decisions\n\n{listed}\n"


def _configuration(pages: dict[str, str]) -> str:
    """Return the configuration of Zensical, in TOML: its strings and lists are written as in JSON."""
    navigation = ",\n".join(
        "  { " + ", ".join(f"{json.dumps(key)} = {json.dumps(value)}" for key, value in group.items()) + " }"
        for group in read_navigation(pages)
    )
    features = [
        "content.code.copy",
        "navigation.footer",
        "navigation.path",
        "navigation.sections",
        "navigation.top",
        "search.highlight",
    ]
    return f"""[project]
site_name = "Beckon"
site_description = "An LLM agent platform on Knative and CloudEvents"
nav = [
{navigation}
]
[project.theme]
language = "en"
font = false
features = {json.dumps(features)}
[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"
[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"
[project.extra.version]
provider = "mike"
[project.markdown_extensions]
attr_list = {{}}
md_in_html = {{}}
tables = {{}}
toc.permalink = true
toc.slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
pymdownx.highlight.pygments_lang_class = true
pymdownx.superfences = {{}}
"""


class _Page(HTMLParser):
    """The ids of a page, and the targets of its links, images, scripts and style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the ids and targets of a tag."""
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.ids.add(value)
            elif value and name in ("href", "src", "srcset"):
                self.targets.add(value)


def find_broken_links(folder: Path) -> Iterator[str]:
    """Yield each local link that leads to no file, or to no heading of its page."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    for path, page in pages.items():
        if path.name == "404.html":  # its addresses begin at the root of a host
            continue
        for target in sorted(page.targets):
            address = urlsplit(target)
            if address.scheme or address.netloc:
                continue
            file = path if not address.path else Path(normpath(path.parent / unquote(address.path)))
            file = file / "index.html" if file.is_dir() else file
            there = pages.get(file)
            if not file.is_file() or (
                address.fragment and there and unquote(address.fragment) not in there.ids
            ):
                yield f"{target} in {path.relative_to(folder)}"


def main(words: list[str] | None = None) -> int:
    """Build the site; exit code 2 with one line if it cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m supply_chain.site", description="Build the docs' site")
    parser.add_argument("folder", type=Path, help="where to write it")
    parser.add_argument("--source", default="", help="address of the sources, such as https://git.example/v1")
    options = parser.parse_args(words)
    try:
        built = add_version(options.folder, options.source)
    except BadRelease as error:
        sys.stderr.write(f"site: {error}\n")
        return 2
    count = sum(1 for _ in built.rglob("*.html"))
    sys.stdout.write(f"{count} pages, each local link followed: {built / 'index.html'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
