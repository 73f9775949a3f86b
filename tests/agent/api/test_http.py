"""Parts of HTTP that all routes share: HEAD, encoded bodies, and answers that web pages may read."""

import gzip
import json
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from beckon_agent.api.http import middleware
from beckon_runtime.origins import OriginPolicy
from tests.agent.conftest import CLOSED
from tests.agent.running_agent import RunningAgent, Setup, running_agent, user
from tests.agent.scripted_model import says

PAGE = "https://chat.example.com"
QUESTION = json.dumps({"model": "beckon", "messages": [user("go")]}).encode()
BOMB = gzip.compress(json.dumps({"model": "beckon", "messages": [user("x" * 1_000_000)]}).encode())


async def post(agent: RunningAgent, body: bytes | AsyncIterator[bytes], encoding: str) -> httpx.Response:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    return await agent.http.post("/v1/chat/completions", content=body, headers=headers)


@pytest.mark.parametrize("path", ["/v1/models", "/tools", "/openapi.json", "/healthz"])
async def test_head_is_served_wherever_get_is(tmp_path: Path, path: str) -> None:
    async with running_agent(CLOSED, tmp_path) as agent:
        got, head = await agent.http.get(path), await agent.http.head(path)

    assert (got.status_code, head.status_code, head.content) == (200, 200, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["content-type"] == got.headers["content-type"]


@pytest.mark.parametrize(("path", "status"), [("/v1/chat/completions/none", 404), ("/tools/none", 405)])
async def test_head_is_refused_where_get_is(tmp_path: Path, path: str, status: int) -> None:
    async with running_agent(CLOSED, tmp_path) as agent:
        assert (await agent.http.head(path)).status_code == status


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(QUESTION, mtime=0)),
        ("x-gzip", gzip.compress(QUESTION, mtime=0)),
        ("deflate", zlib.compress(QUESTION)),
        ("identity", QUESTION),
    ],
)
async def test_an_encoded_body_is_read(tmp_path: Path, encoding: str, body: bytes) -> None:
    async with running_agent(CLOSED, tmp_path, says("Hello.")) as agent:
        answer = await post(agent, body, encoding)

    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == "Hello."


@pytest.mark.parametrize(
    ("encoding", "body", "status", "cause"),
    [
        ("br", QUESTION, 415, "'br' is not read"),
        ("gzip, gzip", gzip.compress(gzip.compress(QUESTION, mtime=0), mtime=0), 415, "is not read"),
        ("gzip", QUESTION, 400, "not one whole gzip"),
        ("gzip", gzip.compress(QUESTION, mtime=0)[:-9], 400, "not one whole gzip"),
        ("gzip", gzip.compress(QUESTION, mtime=0) + b"more", 400, "not one whole gzip"),
        ("gzip", BOMB, 413, "larger than 10000 bytes"),
    ],
)
async def test_an_encoding_that_is_not_read_is_refused_with_the_cure(
    tmp_path: Path, encoding: str, body: bytes, status: int, cause: str
) -> None:
    async with running_agent(CLOSED, tmp_path, setup=Setup(max_request_bytes=10_000)) as agent:
        answer = await post(agent, body, encoding)

    assert answer.status_code == status
    assert cause in answer.json()["error"]["message"]
    assert answer.headers.get("accept-encoding") == ("gzip, deflate" if status == 415 else None)


async def _in_pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body[:100]
    yield body[100:]


@pytest.mark.parametrize("sent", ["encoded", "whole", "in pieces"])
async def test_a_body_over_the_limit_is_refused_at_once_when_it_is_whole(
    tmp_path: Path, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "_DISCARDING_SECONDS", 3600.0)
    large = b"x" * 20_000
    bodies: dict[str, bytes | AsyncIterator[bytes]] = {
        "encoded": BOMB,
        "whole": large,
        "in pieces": _in_pieces(large),
    }
    async with running_agent(CLOSED, tmp_path, setup=Setup(max_request_bytes=10_000)) as agent:
        answer = await post(agent, bodies[sent], "gzip" if sent == "encoded" else "identity")

    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("origins", "allowed"), [(PAGE, True), ("https://other.example.com", False), ("", False)]
)
async def test_pages_of_allowed_origins_may_read_the_answers(
    tmp_path: Path, origins: str, allowed: bool
) -> None:
    request = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    setup = Setup(origins=OriginPolicy.at("127.0.0.1", origins=origins))
    async with running_agent(CLOSED, tmp_path, setup=setup) as agent:
        before = await agent.http.options("/v1/responses", headers={"origin": PAGE, **request})
        after = await agent.http.get("/v1/models", headers={"origin": PAGE})
        unknown = await agent.http.get("/v1/nothing", headers={"origin": PAGE})

    assert (before.status_code == 200) == allowed
    for answer in (before, after, unknown):
        assert answer.headers.get("access-control-allow-origin") == (PAGE if allowed else None)
