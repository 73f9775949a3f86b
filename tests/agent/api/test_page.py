"""The page as it is served: to everybody, under a strict policy, at addresses that change with it."""

import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import ASGIApp

from beckon_agent.api import page
from beckon_agent.api.access import AuthMiddleware
from beckon_agent.api.page import FOLDER, PageMissing, load_page
from beckon_agent.auth.authentication import Authenticator, KeyFile
from tests.agent.running_agent import open_door
from tests.patience import PATIENCE
from tests.serving import served

Door = Callable[[ASGIApp], ASGIApp]


@asynccontextmanager
async def serving(door: Door = open_door, folder: Path = FOLDER) -> AsyncIterator[httpx.AsyncClient]:
    """Serve the page and nothing else."""
    async with (
        served(door(Starlette(routes=page.make_routes(folder)))) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE) as client,
    ):
        yield client


async def test_everything_that_the_document_names_is_there_and_of_its_type() -> None:
    async with serving() as client:
        document = (await client.get("/")).text
        named = sorted(set(re.findall(r"page/[0-9a-f]{16}/[\w./-]+", document)))
        answers = {name: await client.get(f"/{name}") for name in named}

    types = {Path(name).suffix: answer.headers["content-type"] for name, answer in answers.items()}
    assert {answer.status_code for answer in answers.values()} == {200}
    assert types[".js"] == types[".mjs"] == "text/javascript; charset=utf-8"
    assert types[".css"] == "text/css; charset=utf-8"
    assert types[".woff2"] == "font/woff2"
    assert any(name.endswith("vendor/preact.mjs") for name in named)


async def test_the_policy_lets_nothing_in_from_elsewhere_and_no_script_be_made_of_text() -> None:
    async with serving() as client:
        answer = await client.get("/")

    policy = dict(one.split(" ", 1) for one in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert re.fullmatch(r"'self' 'sha256-[\w+/]{43}='", policy["script-src"])
    assert policy["style-src"] == policy["connect-src"] == policy["font-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert not [value for value in policy.values() if "unsafe" in value or "http" in value or "*" in value]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"


async def test_files_are_cached_for_ever_and_the_document_is_requested_again() -> None:
    async with serving() as client:
        document = await client.get("/")
        script = re.search(r"/?(page/[0-9a-f]{16}/app/main\.js)", document.text)
        assert script is not None
        file = await client.get(f"/{script[1]}")
        again = await client.get("/", headers={"if-none-match": document.headers["etag"]})

    assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert document.headers["cache-control"] == "no-cache"
    assert again.status_code == 304
    assert again.content == b""


async def test_the_page_is_for_everybody_and_nothing_beside_it_is(tmp_path: Path) -> None:
    closed = Authenticator(keys=KeyFile(tmp_path / "keys.jsonl"))
    async with serving(lambda app: AuthMiddleware(app, closed)) as client:
        assert (await client.get("/")).status_code == 200
        assert (await client.head("/")).status_code == 200
        assert (await client.get("/page/0123456789abcdef/none.js")).status_code == 404
        assert (await client.post("/", content=b"")).status_code == 401
        assert (await client.get("/tools")).status_code == 401


@pytest.mark.parametrize(
    "path", ["index.html", "files.py", "app/../files.py", "%2e%2e/files.py", "../page.py"]
)
async def test_nothing_is_served_that_is_no_file_of_the_page(path: str) -> None:
    address = load_page().address
    async with serving() as client:
        assert (await client.get(f"/{address}/{path}")).status_code == 404


def test_another_content_has_another_address(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "page")
    before = load_page(tmp_path / "page")

    (tmp_path / "page/styles/base.css").write_text("body {}")

    assert before.address == load_page().address
    assert load_page(tmp_path / "page").address != before.address


async def test_without_its_libraries_the_page_says_how_to_get_them(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "page", ignore=shutil.ignore_patterns("vendor"))
    async with serving(folder=tmp_path / "page") as client:
        answer = await client.get("/")

    with pytest.raises(PageMissing):
        load_page(tmp_path / "page")
    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert "run `make page` in the checkout" in answer.json()["detail"]
