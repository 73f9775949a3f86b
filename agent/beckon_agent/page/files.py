"""The files of the page, read once.

Their address changes whenever one of them does.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent

_PLACE = "@page@"
"""What stands in `index.html` for the address of the folder."""

_PRELOADS = "<!-- preloads -->"
_SERVED = ("app", "early", "styles", "vendor")
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_IMPORT_MAP = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)
_NAMED = re.compile(rf"{_PLACE}/([\w./-]+)")


class PageMissing(Exception):
    """The libraries of the page are not there; the message says how to get them."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file as it is sent."""

    content: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Page:
    """The page: its document `index`, and its resources `files`.

    The keys of `files` are paths below the folder `address`.
    """

    address: str
    index: bytes
    files: Mapping[str, PageFile]
    import_map: str
    """The hash of the one script inside the document, as a content security policy names it."""


def load_page(folder: Path = FOLDER) -> Page:
    """Read the page.

    Raises `PageMissing` if a file named in its document is missing.
    """
    files = dict(_files(folder))
    document = (folder / "index.html").read_text(encoding="utf-8")
    missing = sorted(name for name in set(_NAMED.findall(document)) if name not in files)
    if missing:
        raise PageMissing(
            f"the page's own libraries are not installed ({missing[0]} is missing): run `make page` in the "
            "checkout that this agent runs from, then start the agent again; its APIs work without them"
        )
    address = f"page/{_digest(document, files)}"
    document = document.replace(_PRELOADS, _preloads(files)).replace(_PLACE, address)
    found = _IMPORT_MAP.search(document)
    import_map = hashlib.sha256((found[1] if found else "").encode()).digest()
    return Page(address, document.encode(), files, f"sha256-{base64.b64encode(import_map).decode()}")


def _files(folder: Path) -> Iterator[tuple[str, PageFile]]:
    for part in _SERVED:
        for path in sorted((folder / part).rglob("*")):
            if path.is_file() and path.suffix in _TYPES:
                yield path.relative_to(folder).as_posix(), PageFile(path.read_bytes(), _TYPES[path.suffix])


def _digest(document: str, files: Mapping[str, PageFile]) -> str:
    digest = hashlib.sha256(document.encode())
    for name, file in files.items():
        for piece in (name.encode(), file.content):
            digest.update(len(piece).to_bytes(8))
            digest.update(piece)
    return digest.hexdigest()[:16]


def _preloads(files: Mapping[str, PageFile]) -> str:
    """Return preload links to all modules.

    A browser then need not find each module in the one that imports it.
    """
    modules = [name for name in files if name.startswith("app/") and name.endswith(".js")]
    return "\n    ".join(f'<link rel="modulepreload" href="{_PLACE}/{name}">' for name in modules)
