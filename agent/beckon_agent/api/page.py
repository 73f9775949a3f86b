"""`GET /`: the page, and its files below `/page/`.

It is served to everybody and holds no data of users: it requests them with the caller's key.
"""

import logging
from functools import partial
from pathlib import Path

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Scope

from beckon_agent.api.http.errors import refuse_request
from beckon_agent.page.files import FOLDER, Page, PageMissing, load_page

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
    """Return True if a request is for the page or its files.

    These are public.
    """
    path = scope["path"]
    return scope["method"] in ("GET", "HEAD") and (path == "/" or path.startswith(_FILES))


def make_routes(folder: Path = FOLDER) -> list[BaseRoute]:
    """Return the routes of the page in a folder.

    If there is no page, the only route answers a 503 that says how to get it.
    """
    try:
        page = load_page(folder)
    except PageMissing as error:
        said = str(error)
        logger.warning("no page at /: %s", said)
        return [Route("/", lambda _: refuse_request("/", 503, said))]
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
    found = page.files.get(request.path_params["path"])
    if found is None:
        return refuse_request(request.url.path, 404, "the page has no such file; reload it")
    headers = {**_HEADERS, "cache-control": _NEVER_CHANGES}
    return Response(found.content, headers=headers, media_type=found.media_type)


def _write_policy(page: Page) -> str:
    return "; ".join(f"{name} {value}" for name, value in _POLICY.items()).replace("@map@", page.import_map)
