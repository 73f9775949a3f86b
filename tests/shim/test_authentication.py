"""Who may call: callers with a credential for this very call, made a moment ago with a key of the shim."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from beckon_agent.tool_calls.broker import ReplyKeys
from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.outcome import CallOutcome, OutgoingCall
from beckon_contract.correlation import Keyring, sign_request
from beckon_contract.resources.tools import Tool
from beckon_shim.tokens import follow_keys
from tests.patience import eventually
from tests.shim.support import CALL, KEY, Posted, Server, Shim, shim_in_front_of

PATH = "/default/main"
BODY = b'{"city":"Paris"}'
OTHER_KEY = "ff" * 16
STRUCTURED = {"content-type": "application/cloudevents+json"}


@pytest.fixture
async def closed(broker: Server) -> AsyncIterator[Shim]:
    """A shim as it is by default, whose tool replies with the data of the call."""
    async with shim_in_front_of(broker.url, open_calls=False) as shim:

        async def echo(posted: Posted) -> None:
            assert await shim.reply(posted.token, posted.body) == 202

        broker.behaviour = echo
        yield shim


def credential(
    headers: Mapping[str, str] = CALL,
    body: bytes = BODY,
    *,
    path: str = PATH,
    keys: str = KEY,
    age: float = 0.0,
) -> str:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    return sign_request(Keyring.parse(keys), path, raw, body, time.time() - age)


async def refused(shim: Shim, broker: Server, headers: Mapping[str, str], body: bytes = BODY) -> str:
    """POST a call that must be refused before the Broker hears of it; return the detail of the problem."""
    status, answered, content = await shim.post(shim.url + PATH, headers, body)
    problem = json.loads(content)

    assert (status, answered["content-type"]) == (401, "application/problem+json")
    assert answered["www-authenticate"] == "Beckon"
    assert problem["type"].endswith("/unauthenticated")
    assert problem["delivered"] is False
    assert broker.posts == []
    return str(problem["detail"])


async def test_a_signed_call_is_answered(closed: Shim, broker: Server) -> None:
    status, _, body = await closed.post(
        closed.url + PATH, {**CALL, "authorization": credential(), "prefer": "wait=5"}, BODY
    )

    assert (status, body) == (200, BODY)
    assert "authorization" not in broker.posts[0].headers


async def test_a_signed_call_in_structured_mode_is_answered(closed: Shim) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/s", "type": "weather", "data": {"a": 1}}
    body = json.dumps(event).encode()
    headers = {**STRUCTURED, "authorization": credential(STRUCTURED, body)}

    assert (await closed.post(closed.url + PATH, headers, body))[0] == 200


async def test_a_call_without_a_credential_is_refused_and_counted(closed: Shim, broker: Server) -> None:
    detail = await refused(closed, broker, CALL)

    assert "no credential" in detail
    assert "BECKON_SHIM_KEYS_FILE" in detail
    assert await closed.metric('beckon_shim_calls_total{outcome="unauthenticated"}') == 1


@pytest.mark.parametrize(
    "value",
    [
        "",
        "Bearer bk_0123456789",
        "Beckon",
        "Beckon 1.",
        f"Beckon 99999999999999.{'A' * 43}",
        f"Beckon -1.{'A' * 43}",
        f"Beckon 1.{'A' * 44}",
        f"Beckon 1.{'A' * 43}, Beckon 1.{'A' * 43}",
    ],
)
async def test_a_credential_of_another_form_is_refused(closed: Shim, broker: Server, value: str) -> None:
    assert "`Beckon TIME.MAC`" in await refused(closed, broker, {**CALL, "authorization": value})


async def test_a_credential_of_another_key_is_refused(closed: Shim, broker: Server) -> None:
    forged = {**CALL, "authorization": credential(keys=OTHER_KEY)}

    assert "no key of the shim" in await refused(closed, broker, forged)


@pytest.mark.parametrize(
    ("age", "said"), [(75, r"\d\d s ago"), (3600, r"36\d\d s ago"), (-75, r"\d\d s from now")]
)
async def test_a_credential_of_another_time_is_refused(
    closed: Shim, broker: Server, age: float, said: str
) -> None:
    stale = {**CALL, "authorization": credential(age=age)}

    detail = await refused(closed, broker, stale)

    assert re.search(said, detail)
    assert "clocks" in detail


@pytest.mark.parametrize("age", [-50, 50])
async def test_clocks_may_differ_by_less_than_a_minute(closed: Shim, age: float) -> None:
    headers = {**CALL, "authorization": credential(age=age)}

    assert (await closed.post(closed.url + PATH, headers, BODY))[0] == 200


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, b'{"city":"Rome"}', id="another body"),
        pytest.param({}, b"", id="no body"),
        pytest.param({"ce-type": "payment"}, BODY, id="another type"),
        pytest.param({"ce-id": "call-2"}, BODY, id="another id"),
        pytest.param({"ce-source": "/other"}, BODY, id="another source"),
        pytest.param({"ce-subject": "added"}, BODY, id="one attribute more"),
        pytest.param({"content-type": "text/plain"}, BODY, id="another content type"),
    ],
)
async def test_a_credential_that_was_seen_serves_no_other_call(
    closed: Shim, broker: Server, headers: dict[str, str], body: bytes
) -> None:
    replayed = {**CALL, "authorization": credential(), **headers}

    assert "this very call" in await refused(closed, broker, replayed, body)


async def test_a_credential_serves_one_broker(closed: Shim, broker: Server) -> None:
    elsewhere = {**CALL, "authorization": credential(path="/default/other")}

    assert "this very call" in await refused(closed, broker, elsewhere)


async def test_a_token_that_a_tool_is_given_is_no_credential(closed: Shim, broker: Server) -> None:
    await closed.post(closed.url + PATH, {**CALL, "authorization": credential()}, BODY)
    token = broker.posts.pop().token

    await refused(closed, broker, {**CALL, "authorization": f"Beckon {token}"})
    await refused(closed, broker, {**CALL, "authorization": token})


async def test_probes_and_metrics_need_no_credential(closed: Shim) -> None:
    for path in ("/healthz", "/readyz", "/metrics"):
        async with closed.client.get(closed.url + path) as answer:
            assert answer.status == 200


async def test_the_log_names_the_call_and_not_its_credential(
    closed: Shim, broker: Server, caplog: pytest.LogCaptureFixture
) -> None:
    forged = credential(keys=OTHER_KEY)

    with caplog.at_level(logging.DEBUG):
        await refused(closed, broker, {**CALL, "authorization": forged})

    (line,) = [record for record in caplog.records if "unauthenticated" in record.getMessage()]
    assert vars(line)["event_id"] == CALL["ce-id"]
    assert forged.partition(".")[2] not in caplog.text


async def test_a_new_key_is_taken_beside_the_old_one(closed: Shim, tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{KEY}\n{OTHER_KEY}\n")
    following = asyncio.create_task(follow_keys(file, closed.service.tokens))

    async def takes(keys: str) -> bool:
        headers = {**CALL, "authorization": credential(keys=keys)}
        return (await closed.post(closed.url + PATH, headers, BODY))[0] == 200

    await eventually(lambda: takes(OTHER_KEY))
    assert await takes(KEY)
    following.cancel()


def a_call() -> OutgoingCall:
    """Return a call whose event has names and values of every kind."""
    tool = Tool("weather", "default", "weather", "main", None, "", {"type": "object"}, "/ü b", 5)
    return OutgoingCall("run-1.0.0", tool, {"city": "Köln"}, "/beckon/agents/a", 5)


async def sent(shim: Shim, keys: ReplyKeys) -> CallOutcome:
    async with aiohttp.ClientSession() as session:
        return await Dispatcher(session, shim.url, keys=keys).send(a_call())


async def test_the_agent_signs_its_calls(closed: Shim) -> None:
    assert await sent(closed, ReplyKeys(KEY)) == CallOutcome({"city": "Köln"})


async def test_an_agent_without_the_keys_is_reported_how_to_get_them(closed: Shim, broker: Server) -> None:
    outcome = await sent(closed, ReplyKeys())

    assert outcome.failed
    assert "BECKON_SHIM_KEYS_FILE" in str(outcome.result)
    assert broker.posts == []


async def test_the_agent_signs_with_a_new_key_as_soon_as_the_file_has_it(
    closed: Shim, tmp_path: Path
) -> None:
    file = tmp_path / "keys"
    file.write_text(OTHER_KEY)
    keys = ReplyKeys(path=file)
    assert (await sent(closed, keys)).failed

    file.write_text(f"{KEY}\n{OTHER_KEY}\n")

    assert await sent(closed, keys) == CallOutcome({"city": "Köln"})


async def test_the_agent_signs_anew_when_it_tries_again(closed: Shim, broker: Server) -> None:
    """A Broker that is busy is tried again; each try has a credential that counts."""
    echo, tries = broker.behaviour, []

    async def busy_at_first(posted: Posted) -> web.Response | None:
        tries.append(posted)
        if len(tries) == 1:
            return web.Response(status=429, headers={"retry-after": "0"})
        assert echo is not None
        return await echo(posted)

    broker.behaviour = busy_at_first

    assert await sent(closed, ReplyKeys(KEY)) == CallOutcome({"city": "Köln"})
    assert len(tries) == 2


def test_the_form_of_a_credential_is_what_the_documentation_says() -> None:
    """Made here from the words of docs/access.md, with nothing of Beckon's."""
    raw = [(name.encode(), value.encode()) for name, value in CALL.items()]
    names = ["ce-id", "ce-source", "ce-specversion", "ce-type", "content-type"]
    lines = ["1767225600", PATH, *(f"{name}:{CALL[name]}" for name in names), "", BODY.decode()]
    message = b"beckon authorization 1\n" + hashlib.sha256("\n".join(lines).encode()).digest()
    mac = base64.urlsafe_b64encode(hmac.digest(bytes.fromhex(KEY), message, "sha256")).decode().rstrip("=")

    made = sign_request(Keyring.parse(KEY), PATH, raw, BODY, 1_767_225_600.9)

    assert made == f"Beckon 1767225600.{mac}"
