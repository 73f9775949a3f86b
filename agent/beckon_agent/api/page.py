"""The page at `/`: its files, read once, and their routes.

The address of a file changes whenever one of them does.
"""

import base64
import hashlib
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from beckon_agent.api.http.errors import refuse_request

FOLDER = Path(__file__).parent.parent / "page"

_PLACE = "@page@"
"""The placeholder in `index.html` for the address of the folder."""

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
    """Read the page. Raises `PageMissing` if a file named in its document is missing."""
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
    match = _IMPORT_MAP.search(document)
    import_map = hashlib.sha256((match[1] if match else "").encode()).digest()
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


logger = logging.getLogger(__name__)

_FILES = "/page/"
_NEVER_CHANGES = "public, max-age=31536000, immutable"  # the address changes with the content
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self' '@map@'",
    "style-src": "'self'",
    "font-src": "'self'",
    "connect-src": "'self'",
    # Pictures and sound that a tool answers with are data; nothing is fetched from another place,
    # which an answer could use to carry out what it knows.
    "img-src": "'self' data: blob:",
    "media-src": "data: blob:",
    "form-action": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "dompurify",
}
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


def is_page(scope: Scope) -> bool:
    """Return True if a request is for the page or its files. These are public."""
    path = scope["path"]
    return scope["method"] in ("GET", "HEAD") and (path == "/" or path.startswith(_FILES))


def make_routes(folder: Path = FOLDER) -> list[BaseRoute]:
    """Return the routes of the page in a folder.

    If there is no page, the only route answers a 503 that says how to get it.
    """
    try:
        page = load_page(folder)
    except PageMissing as error:
        reason = str(error)
        logger.warning("no page at /: %s", reason)
        return [Route("/", lambda _: refuse_request("/", 503, reason))]
    packed = [Middleware(GZipMiddleware, minimum_size=1000)]
    return [
        Route("/", partial(_answer_page, page), middleware=packed),
        Route(f"/{page.address}/{{path:path}}", partial(_answer_file, page), middleware=packed),
    ]


async def _answer_page(page: Page, request: Request) -> Response:
    tag = f'"{page.address}"'
    headers = {
        **_HEADERS,
        "content-security-policy": _write_policy(page),
        "cache-control": "no-cache",
        "etag": tag,
    }
    if request.headers.get("if-none-match", "").removeprefix("W/") == tag:
        return Response(status_code=304, headers=headers)
    return Response(page.index, headers=headers, media_type="text/html")


async def _answer_file(page: Page, request: Request) -> Response:
    file = page.files.get(request.path_params["path"])
    if file is None:
        return refuse_request(request.url.path, 404, "the page has no such file; reload it")
    headers = {**_HEADERS, "cache-control": _NEVER_CHANGES}
    return Response(file.content, headers=headers, media_type=file.media_type)


def _write_policy(page: Page) -> str:
    return "; ".join(f"{name} {value}" for name, value in _POLICY.items()).replace("@map@", page.import_map)
