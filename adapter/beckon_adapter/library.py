"""A plain HTTP API to try the adapter with: a small library's books. It knows nothing of events.

    GET  /books?subject=…&author=…     the books that fit
    GET  /books/{id}                   one book, 404 for none
    POST /books/{id}/reservations      {"reader": "Ann"}, 409 where it is lent

Run `python -m beckon_adapter.library`.
"""

import json
import sys
from typing import Any
from urllib.parse import parse_qs

from beckon_tools.__main__ import read_settings
from beckon_tools.app import Receive, Scope, Send
from beckon_tools.errors import UsageError
from beckon_tools.server import run_app

Answer = tuple[int, dict[str, Any]]

BOOKS: dict[int, dict[str, Any]] = {
    1: {
        "id": 1,
        "title": "The Voyage of the Beagle",
        "author": "Charles Darwin",
        "subject": "biology",
        "lent": False,
    },
    2: {"id": 2, "title": "Opticks", "author": "Isaac Newton", "subject": "physics", "lent": True},
    3: {"id": 3, "title": "Elements", "author": "Euclid", "subject": "geometry", "lent": False},
    4: {"id": 4, "title": "Relativity", "author": "Albert Einstein", "subject": "physics", "lent": False},
}
_LARGEST_BODY = 10_000


async def serve_library(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one request."""
    if scope["type"] == "http":
        status, document = _answer_request(scope, await _read_body(receive))
        body = json.dumps(document).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


async def _read_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more and len(body) <= _LARGEST_BODY:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _answer_request(scope: Scope, body: bytes) -> Answer:
    if len(body) > _LARGEST_BODY:
        return 413, {"message": f"the request is larger than {_LARGEST_BODY} bytes"}
    match scope["method"], *scope["path"].strip("/").split("/"):
        case "GET", "healthz":
            return 200, {"status": "ok"}
        case "GET", "books":
            parameters = parse_qs(scope["query_string"].decode("latin-1"))
            return _search_books({name: values[0] for name, values in parameters.items()})
        case "GET", "books", number:
            book = _find_book(number)
            return (200, book) if book else (404, {"message": f"there is no book {number}"})
        case "POST", "books", number, "reservations":
            return _reserve_book(number, body)
        case "GET" | "POST", *_:
            return 404, {"message": "there are only books here"}
        case _:
            return 405, {"message": "use GET or POST"}


def _search_books(wanted: dict[str, str]) -> Answer:
    if unknown := sorted(wanted.keys() - {"subject", "author"}):
        return 400, {"message": f"books are not found by {unknown[0]}; use subject or author"}
    books = [
        book
        for book in BOOKS.values()
        if all(text.lower() in str(book[name]).lower() for name, text in wanted.items())
    ]
    return 200, {"count": len(books), "books": books}


def _find_book(number: str) -> dict[str, Any] | None:
    return next((book for book in BOOKS.values() if str(book["id"]) == number), None)


def _reserve_book(number: str, body: bytes) -> Answer:
    book = _find_book(number)
    try:
        reader = json.loads(body)["reader"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return 400, {"message": 'write the reader: {"reader": "Ann"}'}
    if book is None:
        return 404, {"message": f"there is no book {number}"}
    if book["lent"]:
        return 409, {"message": f"{book['title']} is lent"}
    return 201, {"reserved": book["title"], "reader": reader}


def main() -> int:
    """Serve until SIGTERM; return 2 for a taken port or an invalid setting."""
    try:
        run_app(serve_library, "library", read_settings())
    except UsageError as error:
        sys.stderr.write(f"library: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
