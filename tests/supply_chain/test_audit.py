"""The look-up of known vulnerabilities, against a database of the test's own."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from supply_chain.audit import main, pinned

Question = dict[str, Any]


@contextmanager
def database(
    vulnerable: dict[str, list[str]], status: int = 200, body: bytes = b""
) -> Iterator[tuple[str, list[Question]]]:
    """Serve a database that knows these vulnerabilities by the name of a package; yield what it is sent."""
    sent: list[Question] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["content-length"])))
            sent.append(question)
            results = [self.known(query["package"]["purl"]) for query in question["queries"]]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body or json.dumps({"results": results}).encode())

        def known(self, purl: str) -> dict[str, Any]:
            ids = vulnerable.get(purl.partition("@")[0].rpartition("/")[2], [])
            return {"vulns": [{"id": one} for one in ids]} if ids else {}

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", sent
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_packages_without_known_vulnerabilities_exit_0(capsys: pytest.CaptureFixture[str]) -> None:
    with database({}) as (url, sent):
        assert main(["--service", url]) == 0

    request = [query["package"]["purl"] for question in sent for query in question["queries"]]
    assert request == [package.purl for package in pinned()]
    assert any(purl.startswith("pkg:pypi/aiohttp@") for purl in request)
    assert any(purl.startswith("pkg:npm/preact@") for purl in request)
    assert f"{len(request)} packages, 0 with known vulnerabilities" in capsys.readouterr().out


def test_a_known_vulnerability_is_named_and_exits_1(capsys: pytest.CaptureFixture[str]) -> None:
    with database({"aiohttp": ["GHSA-2", "GHSA-1"], "preact": ["GHSA-3"]}) as (url, _):
        assert main(["--service", url]) == 1

    said = capsys.readouterr().out
    assert "GHSA-1, GHSA-2" in said
    assert "npm preact" in said
    assert "2 with known vulnerabilities" in said


def refused(url: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["--service", url]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("make audit: nothing was checked: ")
    return line


def test_without_a_network_it_says_that_nothing_was_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

    assert "OSV_URL" in refused(f"http://127.0.0.1:{port}", capsys)


@pytest.mark.parametrize(
    ("status", "body"), [(503, b"{}"), (200, b"<html>"), (200, b"[]"), (200, b'{"results":[]}')]
)
def test_an_answer_that_says_nothing_is_no_clean_bill(
    capsys: pytest.CaptureFixture[str], status: int, body: bytes
) -> None:
    with database({}, status, body) as (url, _):
        assert url in refused(url, capsys)


def test_an_address_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    refused("nowhere", capsys)
