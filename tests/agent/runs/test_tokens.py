"""The token of a call lets its reader answer it, so it is shown nowhere."""

import base64
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiohttp import web

from beckon_agent.api.runs.documents import exchanged_document
from beckon_agent.core.records import Exchanged
from beckon_agent.core.run_types import Limits
from beckon_contract.correlation import Keyring, SigningKey, mint
from tests.agent.conftest import say_it_plainly
from tests.agent.event_platform import EventPlatform, described, event_platform
from tests.agent.responses.conftest import StartFace
from tests.agent.running_agent import Setup
from tests.agent.scripted_model import asks_for, says
from tests.shim.support import Posted, serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS: list[str] = []


async def keep_the_token(call: Posted) -> web.Response:
    """Take a call and never answer it, or answer with the token itself in the data."""
    TOKENS.append(call.token)
    if call.headers["ce-type"] == "test.silent":
        return web.Response(status=202)
    answer = await say_it_plainly(call)
    answer.body = f"my token is {call.token}, thank you".encode()
    return answer


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def platform(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EventPlatform]:
    """A tool that never answers, and one that says what it was sent."""
    manifests = [*described("test.silent", "by-hand"), *described("test.leaky", "by-hand")]
    async with serving() as by_hand:
        by_hand.behaviour = keep_the_token
        folder, addresses = tmp_path_factory.mktemp("manifests"), {"by-hand": by_hand.url}
        async with event_platform(folder, [], addresses, *manifests) as running:
            yield running


@pytest.mark.parametrize("tool", ["test_silent", "test_leaky"])
async def test_no_face_of_a_run_shows_the_token_of_a_call(
    start_face: StartFace, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    TOKENS.clear()
    setup = Setup(limits=Limits(call_timeout=1 if tool == "test_silent" else 10))
    async with start_face(asks_for((tool, {})), says("Done."), setup=setup) as face:
        run = (await face.ask())["id"]
        stream = await face.http.get(f"/runs/{run}/events", headers={"accept": "text/event-stream"})
        shown = [stream.text, caplog.text]
        for path in (f"/runs/{run}/events", f"/runs/{run}", "/runs"):
            answer = await face.http.get(path)
            assert answer.status_code == 200
            shown.append(answer.text)
        (found,) = (await face.http.get(f"/runs/{run}/events")).json()["data"]

    assert TOKENS
    assert found["call"]["type"] == tool.replace("_", ".")
    assert (found["problem"] or {}).get("status") == (504 if tool == "test_silent" else None)
    for token in TOKENS:
        assert all(token not in text for text in shown)


async def test_what_an_earlier_version_stored_of_a_call_that_timed_out_is_shown_without_its_token() -> None:
    token = mint(Keyring([SigningKey.random()]), "shim-0", b"e1")
    problem = {"status": 504, "detail": "no reply came", "correlation": token, "more": [f"see {token}."]}

    shown = exchanged_document(Exchanged("e1", "add", None, {"problem": problem}))

    assert token not in json.dumps(shown)
    assert shown["problem"]["detail"] == "no reply came"


async def test_what_only_looks_a_little_like_a_token_is_shown_as_it_is() -> None:
    texts = ["1.2.3", "a.b.c", "x" * 300, base64.b64encode(b"y" * 90).decode(), "www.example.com"]
    event = {"id": "e1", "data": {"texts": texts, "count": 3, "none": None}}

    assert exchanged_document(Exchanged("e1", "add", {"event": event}))["call"] == event
