"""`beckon import a2a`, with a real agent: what becomes of its skills, and that a call reaches it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from beckon_adapter.check import check_rules
from beckon_contract.catalogue.check import check
from beckon_contract.kubernetes_objects import Resource, parse_manifests
from beckon_runtime.egress import AllowedHost
from beckon_sources.folders import read_folder
from tests.adapter.a2a_agent import CARD, TravelAgent, agent_app, describe_agent
from tests.adapter.plain_api import adapting, egress_to
from tests.cli.run_beckon import beckon
from tests.serving import served
from tests.tools.serving import call

OLD_CARD: dict[str, Any] = {
    "name": "Old Agent",
    "url": "rpc",
    "protocolVersion": "0.3.0",
    "preferredTransport": "JSONRPC",
    "skills": [
        {"id": "Count sheep", "description": "Count sheep."},
        {"id": "old-agent.count-sheep"},
        {"id": "old_agent"},
    ],
    "security": [{"oauth": []}],
}


async def run_import(url: str, *words: str) -> tuple[int, str, str]:
    done = await asyncio.to_thread(beckon, "import", "a2a", url, *words)
    return done.returncode, done.stdout, done.stderr


def card_app(card: object, status: int = 200) -> Starlette:
    """Return an application that serves a card, for callers with the token `open`, or for all."""

    async def send_card(request: Request) -> Response:
        if status == 401 and request.headers.get("authorization") != "Bearer open":
            return Response(status_code=401)
        return JSONResponse(card) if not isinstance(card, bytes) else Response(card)

    return Starlette(routes=[Route(CARD, send_card), Route("/travel" + CARD, send_card)])


@pytest.mark.parametrize("version", ["1.0", "0.3"])
async def test_a_skill_becomes_a_tool_whose_calls_reach_the_agent(version: str, tmp_path: Path) -> None:
    agent = TravelAgent()
    card = describe_agent("", version)
    async with served(agent_app(agent, card), lifespan="off") as url:
        status, report, errors = await run_import(url, "--output", str(tmp_path), "--timeout", "90s")
        found = [each for each in read_folder(tmp_path) if isinstance(each, Resource)]
        types = {each.name: each for each in found if each.kind == "EventType"}
        async with adapting(egress_to(AllowedHost(host=url, private=True)), *types.values()) as adapter:
            answer = await adapter.result(call("travel-agent.find-trains", {"message": "From Bonn to Ulm"}))

    assert status == 0, errors
    assert "2 skills, 2 imported, 0 skipped" in report
    assert f"BECKON_ADAPTER_ALLOWED_HOSTS=\"[{{host: '{url}', private: true}}]\"" in report
    assert types.keys() == {"travel-agent.find-trains", "travel-agent.book-seat"}
    trains = types["travel-agent.find-trains"]
    assert trains.spec["description"] == (
        "Find trains between two towns. For example: From Bonn to Ulm on Monday"
    )
    assert trains.annotations["beckon.dev/timeout"] == "90s"
    assert check(found).errors == 0
    assert list(check_rules(found)) == []
    assert answer == "From Bonn to Ulm."
    assert agent.messages[0].metadata["skillId"] == "find-trains"


async def test_a_list_shows_what_a_model_will_call_each_skill_and_writes_nothing() -> None:
    async with served(agent_app(TravelAgent(), describe_agent("http://a", "1.0")), lifespan="off") as url:
        status, printed, _ = await run_import(url, "--list", "--name", "rail", "--select", "book*")

    assert status == 0
    assert "rail_book_seat" in printed
    assert "book_seat" in printed
    assert "find" not in printed


async def test_a_card_of_the_older_version_is_read_and_its_address_is_beside_it() -> None:
    async with served(card_app(OLD_CARD), lifespan="off") as url:
        status, printed, report = await run_import(f"{url}/travel")

    assert status == 0, report
    made, itself = [
        each
        for each in parse_manifests(printed, "x.yaml")
        if isinstance(each, Resource) and each.kind == "EventType"
    ]
    assert (made.name, itself.name) == ("old-agent.count-sheep", "old-agent")
    assert f"agent: {url}/travel/.well-known/rpc" in made.annotations["beckon.dev/a2a"]
    assert "version: '0.3'" in made.annotations["beckon.dev/a2a"]
    assert "the agent requires credentials: import it with --credential NAME" in printed.replace("\n# ", " ")
    assert "another skill is called old-agent.count-sheep already" in report


async def test_a_card_that_requires_a_token_is_read_with_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("open\n")
    async with served(card_app(OLD_CARD, 401), lifespan="off") as url:
        refused, _, report = await run_import(url, "--list")
        status, _, _ = await run_import(url, "--list", "--token-file", str(tmp_path / "token"))

    assert refused == 2
    assert "answers 401 Unauthorized (read it with --token-file FILE)" in report
    assert status == 0


@pytest.mark.parametrize(
    ("card", "words", "cause"),
    [
        (b"{", (), "there is no agent card"),
        ({"skills": []}, (), "is no agent card: name: Field required"),
        ({"name": "a", "url": "x", "preferredTransport": "GRPC"}, (), "has no interface for JSON-RPC"),
        ({"name": "a", "url": "http://["}, (), "the agent's address cannot be called: "),
        ({"name": "a", "url": "http://é.example/"}, (), "write an international name in ASCII, as xn--…"),
        (OLD_CARD, ("--select", "cuont sheep"), "did you mean 'Count sheep'?"),
        (OLD_CARD, ("--timeout", "soon"), "--timeout: 'soon' is no duration"),
        (OLD_CARD, ("--name", "a", "--diff"), "--diff needs the folder"),
    ],
)
async def test_what_cannot_be_imported_is_one_line_with_the_cause(
    card: object, words: tuple[str, ...], cause: str
) -> None:
    async with served(card_app(card), lifespan="off") as url:
        status, _, report = await run_import(url, *words)

    assert status == 2
    assert cause in report
    assert len(report.splitlines()) == 1


async def test_an_address_that_is_none_or_has_no_card_is_an_error() -> None:
    async with served(card_app(OLD_CARD), lifespan="off") as url:
        elsewhere = await run_import(f"{url}/elsewhere")
    none = await run_import("travel")

    assert (elsewhere[0], none[0]) == (2, 2)
    assert "answers 404" in elsewhere[2]
    assert "'travel' is no URL: write https://HOST" in none[2]
