"""Every face with every kind of caller and every kind of rule: who is let in, and what each finds there."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from itertools import product

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.core.records import Ended, NewRun, StoredCall, StoredTurn
from beckon_contract.api_keys import new_entry, new_key
from beckon_contract.inputs import Form, InputRequest
from tests.agent.auth.closed_service import ClosedService, bearing, checking, closed_service, terms
from tests.agent.auth.issuer import Issuer, issuing
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENTS = {
    "open": terms(),
    "group": terms(access={"groups": ["ops"]}),
    "user": terms(access={"users": ["oidc:alice"]}),
    "key": terms(access={"users": ["key:plain"]}),
    "both": terms(access={"users": ["oidc:alice"], "groups": ["ops"]}),
    "closed": terms(access={"users": []}),
    "everybody": terms(access={"users": ["*"]}),
    "split": terms(
        access={
            "toolRules": [
                {"users": ["*"], "tools": {"names": ["test.echo"]}},
                {"groups": ["ops"], "tools": {"names": ["test_nap", "test.fail"]}},
                {"users": ["oidc:alice"], "tools": {"names": ["test_fail"]}},
            ]
        }
    ),
}

# Who may use what: the agents of each caller, and the caller's tools of the agent "split".
MAY_USE = {
    "plain-key": {"open", "key", "everybody", "split"},
    "ops-key": {"open", "group", "both", "everybody", "split"},
    "alice": {"open", "user", "both", "everybody", "split"},
    "eve": {"open", "everybody", "split"},
}
MAY_CALL = {
    "plain-key": ["test_echo"],
    "ops-key": ["test_echo", "test_fail", "test_nap"],
    "alice": ["test_echo", "test_fail"],
    "eve": ["test_echo"],
}
ARGUMENTS: dict[str, dict[str, object]] = {
    "test_echo": {"text": "x"},
    "test_nap": {"milliseconds": 1},
    "test_fail": {"kind": "refuse"},
}
STRANGERS = ["none", "made-up-key", "expired-token", "nonsense"]


@dataclass(frozen=True)
class House:
    """The service, and the credential of each caller."""

    service: ClosedService
    credentials: dict[str, str | None]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def issuer() -> AsyncIterator[Issuer]:
    async with issuing() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    platform: EventPlatform, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[House]:
    """A service with all the agents, and all the callers at its door."""
    plain, ops = new_key(), new_key()
    file = tmp_path_factory.mktemp("access") / "keys.jsonl"
    file.write_text(f"{new_entry(plain, 'plain').line()}\n{new_entry(ops, 'ops', ['ops']).line()}\n")
    credentials = {
        "plain-key": plain,
        "ops-key": ops,
        "alice": issuer.token(),
        "eve": issuer.token(sub="eve", groups=["key:plain", "*"]),
        "none": None,
        "made-up-key": new_key(),
        "expired-token": issuer.token(exp=1),
        "nonsense": "sk-nonsense",
    }
    async with (
        aiohttp.ClientSession() as session,
        closed_service(platform, AGENTS, checking(issuer, file, session)) as service,
    ):
        yield House(service, credentials)


@pytest.mark.parametrize("caller", MAY_USE)
async def test_the_model_list_holds_the_agents_that_a_caller_may_use(house: House, caller: str) -> None:
    listed = await house.service.models(house.credentials[caller])

    assert set(listed) == MAY_USE[caller]


@pytest.mark.parametrize(("caller", "agent"), list(product(MAY_USE, AGENTS)))
async def test_an_agent_answers_those_who_may_use_it_and_is_not_there_for_others(
    house: House, caller: str, agent: str
) -> None:
    service, credential = house.service, house.credentials[caller]
    allowed = agent in MAY_USE[caller]
    service.model.script[:] = [says("hello")]
    requested_before = len(service.model.requests)

    whole = await service.chat(agent, credential)
    service.model.script[:] = [says("hello")]
    streamed = await service.chat(agent, credential, stream=True)
    described = await service.http.get(f"/v1/models/{agent}", headers=bearing(credential))
    listed = await service.http.get("/tools", params={"agent": agent}, headers=bearing(credential))
    called = await service.call(agent, "test_echo", credential, text="x")

    answers = [whole, streamed, described, listed, called]
    assert [answer.status_code for answer in answers] == [200 if allowed else 404] * 5
    assert len(service.model.requests) - requested_before == (2 if allowed else 0)
    if not allowed:
        assert whole.json()["error"]["code"] == "model_not_found"
        shown = whole.json()["error"]["message"].partition("one of: ")[2]
        assert set(shown.split(", ")) == MAY_USE[caller]
        assert called.json()["type"].endswith("/unknown-agent")


@pytest.mark.parametrize("caller", MAY_CALL)
async def test_a_caller_is_offered_the_tools_that_rules_name_the_caller_for(
    house: House, caller: str
) -> None:
    service, credential = house.service, house.credentials[caller]
    service.model.script[:] = [says("hello")]

    listed = await service.tools("split", credential)
    await service.chat("split", credential)

    declared = [tool["function"]["name"] for tool in service.model.requests[-1].body["tools"]]
    assert listed == declared == MAY_CALL[caller]


@pytest.mark.parametrize(("caller", "tool"), list(product(MAY_CALL, ARGUMENTS)))
async def test_a_tool_of_others_cannot_be_called_by_hand_nor_by_the_model(
    house: House, caller: str, tool: str
) -> None:
    service, credential = house.service, house.credentials[caller]
    arguments = ARGUMENTS[tool]
    service.model.script[:] = [asks_for((tool, arguments)), says("done")]

    by_hand = await service.call("split", tool, credential, **arguments)
    by_model = await service.chat("split", credential, beckon={"events": True})

    (finished,) = [one for one in by_model.json()["beckon"]["events"] if one["type"] == "call.finished"]
    reason = finished["result"]["error"]["reason"] if finished["failed"] else ""
    allowed = tool in MAY_CALL[caller]
    assert by_hand.status_code == (404 if not allowed else 502 if tool == "test_fail" else 200)
    assert (reason == "unknown_tool") is not allowed


async def test_a_message_about_an_unknown_tool_names_no_tool_of_others(house: House) -> None:
    answer = await house.service.call("split", "test_naps", house.credentials["eve"])

    assert answer.status_code == 404
    assert "did you mean" not in answer.text


@pytest.mark.parametrize(("caller", "agent"), list(product(MAY_USE, ["open", "group", "no_one", "split"])))
async def test_stored_runs_events_and_mcp_are_for_the_same_callers(
    house: House, caller: str, agent: str
) -> None:
    service, headers = house.service, bearing(house.credentials[caller])
    allowed = agent in MAY_USE[caller]
    event = {"specversion": "1.0", "id": f"{caller}-{agent}", "source": "/test", "type": "test.question"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    mcp = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    service.model.script[:] = [says("hello"), says("hello")]

    stored = await service.http.post("/v1/responses", json={"model": agent, "input": "go"}, headers=headers)
    answered = await service.http.post(
        f"/events/{agent}",
        json={"question": "go"},
        headers={**headers, **{f"ce-{name}": value for name, value in event.items()}},
    )
    listed = await service.http.post(f"/mcp/{agent}", json=listing, headers={**headers, **mcp})

    answers = [stored, answered, listed]
    assert [answer.status_code for answer in answers] == [200 if allowed else 404] * 3
    if allowed and agent == "split":
        assert all(f'"name":"{name}"' in listed.text for name in MAY_CALL[caller])
        assert listed.text.count('"inputSchema"') == len(MAY_CALL[caller])


@pytest.mark.parametrize("caller", MAY_CALL)
async def test_the_catalogue_explains_nothing_that_a_caller_may_not_call(house: House, caller: str) -> None:
    http, headers = house.service.http, bearing(house.credentials[caller])
    mine = {"agent": "split"}

    listed = (await http.get("/catalogue", params=mine, headers=headers)).json()
    echo = await http.get("/catalogue/default/test.echo", params=mine, headers=headers)
    nap = await http.get("/catalogue/default/test.nap", params=mine, headers=headers)

    assert [entry["name"] for entry in listed["data"]] == MAY_CALL[caller]
    assert listed["counts"] == {"ready": len(MAY_CALL[caller]), "refused": 0, "skipped": 0}
    assert [station["kind"] for station in echo.json()["route"]][:3] == ["EventType", "Broker", "Trigger"]
    assert nap.status_code == (200 if "test_nap" in MAY_CALL[caller] else 404)


async def test_runs_approvals_and_conversations_are_there_for_their_owner_alone(house: House) -> None:
    service = house.service
    service.model.script[:] = [asks_for(("test_danger", {})), says("done")]
    owner = bearing(house.credentials["alice"])
    conversation = (await service.http.post("/v1/conversations", json={}, headers=owner)).json()["id"]
    body = {"model": "open", "input": "a secret", "conversation": conversation}
    run = (await service.http.post("/v1/responses", json=body, headers=owner)).json()["id"]
    waiting = (await service.http.get("/approvals", headers=owner)).json()["data"][0]
    word = {"approve": True}

    for caller in ("plain-key", "ops-key", "eve"):
        other = bearing(house.credentials[caller])
        for path in ("/runs", "/approvals", "/v1/conversations?query=secret"):
            found = (await service.http.get(path, headers=other)).json()["data"]
            assert run not in str(found)
            assert conversation not in str(found)
        for path in (f"/runs/{run}", f"/runs/{run}/events"):
            assert (await service.http.get(path, headers=other)).status_code == 404
        refused = await service.http.post(f"/approvals/{waiting['id']}", json=word, headers=other)
        assert refused.status_code == 404
    decided = await service.http.post(f"/approvals/{waiting['id']}", json={"approve": False}, headers=owner)

    async def is_over() -> bool:  # the next test has a script of its own
        status = (await service.http.get(f"/runs/{run}", headers=owner)).json()["status"]
        return bool(status == "completed")

    assert (waiting["run"], decided.status_code) == (run, 200)
    await eventually(is_over)


async def test_the_form_of_a_tool_is_there_for_the_owner_of_its_run_alone(house: House) -> None:
    service, owner = house.service, bearing(house.credentials["alice"])
    service.model.script[:] = [says("hello")]
    first = await service.http.post("/v1/responses", json={"model": "open", "input": "hi"}, headers=owner)
    known = await service.store.runs.get(first.json()["id"])
    assert known is not None
    new = NewRun(id="run_form", owner=known.owner, agent="open", face="responses", input=known.input)
    await service.store.runs.create(new, holder="another", seconds=60)
    call = StoredCall(
        event_id="run_form.0.0",
        step=0,
        number=0,
        id="c",
        name="test_echo",
        arguments={},
        state="input",
        input_request=InputRequest({"input": Form("A secret?")}).to_document(),
    )
    await service.store.journal.add_turn("run_form", "another", StoredTurn(step=0), [call])
    answer = {"action": "decline"}

    for caller in ("plain-key", "ops-key", "eve"):
        other = bearing(house.credentials[caller])
        assert (await service.http.get("/inputs", headers=other)).json()["data"] == []
        refused = await service.http.post("/inputs/inreq_run_form.0.0", json=answer, headers=other)
        assert refused.status_code == 404
    (form,) = (await service.http.get("/inputs", headers=owner)).json()["data"]
    taken = await service.http.post(f"/inputs/{form['id']}", json=answer, headers=owner)
    again = await service.http.post(f"/inputs/{form['id']}", json=answer, headers=owner)

    assert (form["message"], taken.status_code, again.status_code) == ("A secret?", 200, 409)
    await service.store.runs.end_run("run_form", None, Ended("cancelled"))


FACES = [
    ("GET", "/v1/models"),
    ("GET", "/v1/models/open"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/v1/chat/completions"),
    ("HEAD", "/v1/chat/completions/c"),
    ("GET", "/v1/chat/completions/c/messages"),
    ("DELETE", "/v1/chat/completions/c"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/responses/compact"),
    ("POST", "/v1/responses/input_tokens"),
    ("GET", "/v1/nothing"),
    ("GET", "/tools"),
    ("POST", "/tools/test_echo"),
    ("POST", "/mcp"),
    ("POST", "/events"),
    ("GET", "/openapi.json"),
    ("GET", "/healthz/"),
    ("POST", "/"),
    ("GET", "/runs"),
    ("GET", "/runs/r"),
    ("GET", "/runs/r/events"),
    ("POST", "/runs/r/replay"),
    ("GET", "/approvals"),
    ("POST", "/approvals/a"),
    ("GET", "/inputs"),
    ("POST", "/inputs/i"),
    ("GET", "/v1/conversations"),
    ("DELETE", "/v1/conversations/c/items/i"),
    ("GET", "/catalogue"),
    ("GET", "/catalogue/default/test.echo"),
]


@pytest.mark.parametrize(("stranger", "face"), list(product(STRANGERS, FACES)))
async def test_no_face_lets_a_stranger_in(house: House, stranger: str, face: tuple[str, str]) -> None:
    (method, path), credential = face, house.credentials[stranger]
    BENCH.calls.clear()
    requested_before = len(house.service.model.requests)

    answer = await house.service.http.request(
        method, path, headers=bearing(credential), json={"model": "open", "text": "x", "messages": []}
    )

    assert answer.status_code == 401
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="beckon"')
    assert ('error="invalid_token"' in challenge) is (credential is not None)
    if method == "HEAD":
        assert answer.content == b""
    elif path.startswith("/v1/"):
        assert answer.json()["error"]["code"] == "invalid_api_key"
    else:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"].endswith("/invalid-api-key")
    assert credential is None or credential not in answer.text
    assert (BENCH.calls, len(house.service.model.requests)) == ([], requested_before)


@pytest.mark.parametrize("stranger", STRANGERS)
async def test_probes_are_open_and_show_a_stranger_of_no_agent_and_the_metrics_are_not(
    house: House, stranger: str
) -> None:
    http, headers = house.service.http, bearing(house.credentials[stranger])

    assert (await http.get("/healthz", headers=headers)).status_code == 200
    assert (await http.get("/metrics", headers=headers)).status_code == 401
    ready = await http.get("/readyz", headers=headers)
    assert ready.status_code == 200
    assert (ready.json()["agents"], ready.json()["model"]) == ([], None)


async def test_the_readiness_shows_a_caller_the_own_agents(house: House) -> None:
    ready = await house.service.http.get("/readyz", headers=bearing(house.credentials["alice"]))

    assert set(ready.json()["agents"]) == MAY_USE["alice"]


async def test_denied_by_default_an_agent_is_for_those_alone_whom_it_names(
    platform: EventPlatform, issuer: Issuer
) -> None:
    async with (
        aiohttp.ClientSession() as session,
        closed_service(platform, AGENTS, checking(issuer, None, session), deny_by_default=True) as service,
    ):
        assert set(await service.models(issuer.token())) == {"user", "both", "everybody"}
        assert set(await service.models(issuer.token(sub="eve"))) == {"everybody"}
        assert (await service.chat("open", issuer.token())).status_code == 404
        assert (await service.http.get("/tools", headers=bearing(issuer.token()))).status_code == 404
