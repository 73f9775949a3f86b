"""Descriptions at URLs: redirects are reported, references stay on the host, and all is bounded."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest

from beckon_cli.importing.documents import BadDescription, UrlDocuments
from beckon_cli.importing.openapi.finding import Reading, find_operations
from beckon_cli.importing.openapi.importer import OpenApiOptions
from beckon_cli.importing.openapi.openapi3 import ServerChoice
from tests.cli.importing.reading import openapi
from tests.cli.importing.test_openapi_strangers import with_reference

SILENT: list[str] = []
Pages = dict[str, tuple[int, str, str]]


@contextmanager
def site(pages: Pages) -> Iterator[str]:
    """Serve pages: status, Location, text."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, location, text = pages.get(self.path, (404, "", ""))
            self.send_response(status)
            if location:
                self.send_header("location", location)
            self.send_header("content-length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def imported(url: str, shown: list[str]) -> list[str]:
    """Return the URLs that the tools of a description call."""
    found = find_operations(url, (), OpenApiOptions(), ServerChoice(), Reading(None, shown.append))
    assert found.skipped == []
    return [tool.rule["url"] for tool in found.tools]


def test_servers_are_relative_to_the_description_and_redirects_are_reported() -> None:
    description = openapi({"/a": {"get": {"summary": "Do."}}}, servers=[{"url": "../api"}])
    shown: list[str] = []
    pages: Pages = {"/docs/new/openapi.json": (200, "", json.dumps(description))}
    with site(pages) as host:
        pages["/"] = (301, f"{host}/docs/new/openapi.json", "")

        urls = imported(f"{host}/", shown)

    assert urls == [f"{host}/docs/api/a"]
    assert shown == [f"{host}/ redirects to {host}/docs/new/openapi.json"]


def test_references_on_the_same_host_are_followed_and_others_are_not() -> None:
    part = json.dumps({"A": {"enum": [1, 2]}})
    pages: Pages = {"/parts/a.json": (200, "", part)}
    with site(pages) as host, site({"/a.json": (200, "", part)}) as other:
        pages["/near.json"] = (200, "", json.dumps(with_reference("parts/a.json#/A")))
        pages["/far.json"] = (200, "", json.dumps(with_reference(f"{other}/a.json#/A")))
        pages["/moved.json"] = (302, f"{other}/a.json", "")
        pages["/round.json"] = (200, "", json.dumps(with_reference("moved.json#/A")))

        assert imported(f"{host}/near.json", []) == ["https://pets.example/v1/a"]
        for name in ("far", "round"):
            found = find_operations(
                f"{host}/{name}.json", (), OpenApiOptions(), ServerChoice(), Reading(None, SILENT.append)
            )
            assert [skipped.reason for skipped in found.skipped] == [
                f"refers to {other}/a.json, on another host; download both, and import the file"
            ]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ((404, "", ""), "answers 404 Not Found"),
        ((200, "", "<html>Hello</html>"), "no description of an API but plain text"),
        ((302, "/", ""), "redirects more than 5 times"),
    ],
)
def test_what_is_no_description_is_refused(page: tuple[int, str, str], said: str) -> None:
    with site({"/": page}) as host, pytest.raises(BadDescription, match=said):
        find_operations(f"{host}/", (), OpenApiOptions(), ServerChoice(), Reading(None, SILENT.append))


def test_no_redirect_leads_from_https_to_http() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(302, headers={"location": "http://a.example/openapi.json"})

    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
        pytest.raises(BadDescription, match="which is not encrypted"),
    ):
        UrlDocuments("https://a.example/", client, SILENT.append)


def test_a_description_without_end_is_not_read_to_its_end() -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b" " * 1024 * 1024

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=endless())

    with (
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
        pytest.raises(BadDescription, match="more than 33554432 bytes"),
    ):
        UrlDocuments("https://a.example/", client, SILENT.append)


def test_what_may_be_secret_in_a_url_is_in_no_manifest() -> None:
    description = json.dumps(openapi({"/a": {"get": {"summary": "Do."}}}))
    with site({"/api.json?token=hidden": (200, "", description)}) as host:
        url = f"{host.replace('//', '//me:hidden@')}/api.json?token=hidden"

        found = find_operations(url, (), OpenApiOptions(), ServerChoice(), Reading(None, SILENT.append))

    assert found.origin.name == f"Pets in {host}/api.json"
