"""A call event becomes a message to a real A2A agent, and the reply is what its task came to."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest
from a2a.types.a2a_pb2 import Role
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from beckon_adapter.a2a import A2aCaller, A2aRule, parse_a2a_rule, read_result
from beckon_adapter.declaration import Call
from beckon_adapter.rule import InvalidRule
from beckon_contract.kubernetes_objects import Resource
from beckon_runtime.egress import AllowedHost
from beckon_tools.errors import OutcomeUnknown, Retry
from tests.adapter.a2a_agent import TravelAgent, agent_app, describe_agent
from tests.adapter.plain_api import adapting, closing, egress_to, event_type
from tests.adapter.test_mcp_servers import call_event, message
from tests.serving import served
from tests.tools.serving import Caller

HI = {"media_type": "text/plain", "data_base64": "aGk="}
VERSIONS = pytest.mark.parametrize("version", ["1.0", "0.3"])


@dataclass(frozen=True, slots=True)
class Agency:
    """A running agent, and a caller of the adapter with a tool for it."""

    agent: TravelAgent
    url: str
    adapter: Caller

    async def ask(self, text: str) -> object:
        """Return the result of a call."""
        return await self.adapter.result(call_event({"message": text}))


@asynccontextmanager
async def agency(version: str = "1.0", **rule: str) -> AsyncIterator[Agency]:
    """Serve the agent, and an adapter with one EventType for it."""
    agent = TravelAgent()
    async with served(agent_app(agent, describe_agent("", version)), lifespan="off") as url:
        found = {"agent": f"{url}/rpc", "version": version, "skill": "find-trains", **rule}
        egress = egress_to(AllowedHost(host=url, private=True))
        async with adapting(egress, tool_of(found)) as adapter:
            yield Agency(agent, url, adapter)


def tool_of(rule: Mapping[str, str]) -> Resource:
    return replace(event_type("{}"), annotations={"beckon.dev/a2a": json.dumps(rule)})


@VERSIONS
@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("From Bonn to Ulm", "From Bonn to Ulm."),
        ("hello", "Hello yourself."),
        ("data", {"price": 12.5}),
        ("status", "Said and done."),
        (
            "mixed",
            [{"price": 12.5}, {"media_type": "application/pdf", "data_base64": "JVBERg=="}],
        ),
    ],
)
async def test_a_message_is_answered_by_what_the_task_came_to(
    version: str, text: str, result: object
) -> None:
    async with agency(version) as travel:
        found = await travel.ask(text)

    assert found == result
    (sent,) = travel.agent.messages
    assert sent.role == Role.ROLE_USER
    assert [part.text for part in sent.parts] == [text]
    assert sent.metadata["skillId"] == "find-trains"
    assert len(sent.message_id) == 32


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"file": "https://files.example/a"}, {"file": "https://files.example/a"}),
        ({"file": None, "text": 7}, {"file": None, "text": 7}),
        ({"file": {"bytes": "aGk=", "mimeType": "text/plain"}}, HI),
        ({"raw": "aGk=", "mediaType": "text/plain"}, HI),
        ({"kind": "data", "data": None}, None),
        (None, []),
    ],
)
def test_a_part_of_any_form_is_a_value(part: object, value: object) -> None:
    assert read_result({"message": {"parts": [part]}}, "a.example") == value


@VERSIONS
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("fail", "failed: The timetable is closed."),
        ("reject", "refused the request: Not my trade."),
        ("ask", "needs an answer: Which day?; call it again with a message that has all that it needs"),
    ],
)
async def test_a_task_that_ends_otherwise_is_an_error_with_the_agents_words(
    version: str, text: str, cause: str
) -> None:
    async with agency(version) as travel:
        found = message(await travel.ask(text))

    assert cause in found


@VERSIONS
async def test_a_long_task_is_read_until_it_ends_and_reports_what_it_says(version: str) -> None:
    agent, reports = TravelAgent(), []
    rule = A2aRule(agent="http://agent.test/rpc", version=version)

    async def note(done: float, total: float | None, text: str) -> None:
        reports.append((done, total, text))
        agent.gate.set()

    async with (
        served(agent_app(agent, describe_agent("", version)), lifespan="off") as url,
        closing(egress_to(AllowedHost(host=url, private=True))) as egress,
    ):
        rule = rule.model_copy(update={"agent": f"{url}/rpc"})
        found = await A2aCaller(egress).call_agent(rule, {"message": "hold"}, Call("s", "1", False, note))

    assert found == "From Bonn to Ulm."
    assert reports == [(1, None, "Looking at the timetable")]


async def test_a_task_without_an_end_is_an_unknown_outcome() -> None:
    async with agency(timeout="0.5s") as travel:
        found = await travel.ask("hold")
        travel.agent.gate.set()

    assert "did not end the task within 0.5 s" in message(found)


async def test_an_agent_that_is_away_gets_the_call_again(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    async with closing(egress_to(AllowedHost(host=url, private=True))) as egress:
        with pytest.raises(Retry, match="cannot be reached"):
            await A2aCaller(egress).call_agent(A2aRule(agent=url), {"message": "x"}, Call("s", "1", False))


class FailingAgent:
    """An agent that answers 503 from its first message on, until `agent` lets it go on."""

    def __init__(self, agent: TravelAgent) -> None:
        self._agent = agent
        self._app = agent_app(agent, describe_agent("", "1.0"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._agent.messages:
            await Response(status_code=503)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@pytest.mark.parametrize(
    ("repeatable", "outcome"), [(False, OutcomeUnknown), (True, Retry)], ids=["effect", "repeatable"]
)
async def test_a_task_that_cannot_be_read_any_more_is_an_unknown_outcome_unless_it_may_be_repeated(
    monkeypatch: pytest.MonkeyPatch, repeatable: bool, outcome: type[Exception]
) -> None:
    monkeypatch.setattr("beckon_adapter.a2a._READINGS_LOST", 1)
    agent = TravelAgent()
    async with (
        served(FailingAgent(agent), lifespan="off") as url,
        closing(egress_to(AllowedHost(host=url, private=True))) as egress,
    ):
        rule = A2aRule(agent=f"{url}/rpc")
        with pytest.raises(outcome, match="cannot be read any more"):
            await A2aCaller(egress).call_agent(rule, {"message": "hold"}, Call("s", "1", repeatable))
        agent.gate.set()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"agent": "http://127.0.0.1:1/rpc"}, "the HTTP adapter may not call http://127.0.0.1:1"),
        ({"credential": "tickets"}, "the HTTP adapter has no credential 'tickets'"),
        ({"version": "0.2"}, "metadata.annotations[beckon.dev/a2a].version"),
    ],
)
async def test_a_rule_that_cannot_be_followed_is_an_error_with_the_cure(
    change: dict[str, str], cause: str
) -> None:
    async with agency(**change) as travel:
        found = message(await travel.ask("x"))

    assert cause in found
    assert travel.agent.messages == []


async def test_an_address_without_an_agent_is_an_error_of_the_call() -> None:
    async with agency() as travel:
        egress = egress_to(AllowedHost(host=travel.url, private=True))
        async with adapting(egress, tool_of({"agent": f"{travel.url}/elsewhere"})) as adapter:
            found = message(await adapter.result(call_event({"message": "x"})))

    assert "answered 404" in found


@pytest.mark.parametrize("text", ["[]", "agent: nowhere", "{agent: 'https://a.example/{x}'}", "{skill: a}"])
def test_a_rule_with_a_mistake_names_its_place(text: str) -> None:
    with pytest.raises(InvalidRule, match=r"metadata.annotations\[beckon.dev/a2a\]"):
        parse_a2a_rule(text)
