"""A plain HTTP API to try the adapter with: a small library's books. It knows nothing of events.

    GET  /books?subject=…&author=…     the books that fit
    GET  /books/{id}                   one book, 404 for none
    POST /books/{id}/reservations      {"reader": "Ann"}, 409 where it is lent

Only the standard library, as a service might be that was there before: run
`python -m beckon_tools.adapter.library`.
"""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

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


class Library(BaseHTTPRequestHandler):
    """Answers one request after the other."""

    def do_GET(self) -> None:
        """Answer a question."""
        url = urlsplit(self.path)
        match url.path.strip("/").split("/"):
            case ["books"]:
                self._answer(_search({name: values[0] for name, values in parse_qs(url.query).items()}))
            case ["books", number]:
                book = _book(number)
                self._answer((200, book) if book else (404, {"message": f"there is no book {number}"}))
            case _:
                self._answer((404, {"message": "there are only books here"}))

    def do_POST(self) -> None:
        """Reserve a book."""
        size = min(int(self.headers.get("content-length") or 0), _LARGEST_BODY)
        body = self.rfile.read(size)
        match urlsplit(self.path).path.strip("/").split("/"):
            case ["books", number, "reservations"]:
                self._answer(_reserve(number, body))
            case _:
                self._answer((404, {"message": "only books can be reserved"}))

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 its name in http.server
        """Say nothing of requests."""

    def _answer(self, answer: Answer) -> None:
        status, document = answer
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _search(wanted: dict[str, str]) -> Answer:
    if unknown := sorted(wanted.keys() - {"subject", "author"}):
        return 400, {"message": f"books are not found by {unknown[0]}; use subject or author"}
    found = [
        book
        for book in BOOKS.values()
        if all(text.lower() in str(book[name]).lower() for name, text in wanted.items())
    ]
    return 200, {"count": len(found), "books": found}


def _book(number: str) -> dict[str, Any] | None:
    return BOOKS.get(int(number)) if number.isascii() and number.isdigit() else None


def _reserve(number: str, body: bytes) -> Answer:
    book = _book(number)
    try:
        reader = json.loads(body)["reader"]
    except (ValueError, KeyError, TypeError):
        return 400, {"message": 'write the reader: {"reader": "Ann"}'}
    if book is None:
        return 404, {"message": f"there is no book {number}"}
    if book["lent"]:
        return 409, {"message": f"{book['title']} is lent"}
    return 201, {"reserved": book["title"], "reader": reader}


def main() -> None:
    """Serve until SIGTERM."""
    address = os.environ.get("BECKON_HOST", "127.0.0.1"), int(os.environ.get("PORT", "8080"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ThreadingHTTPServer(address, Library) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
