"""A person's word from the command line, in a process of its own, for a run that waits in the service."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from beckon_agent.auth.authentication import make_authenticator
from beckon_agent.auth.options import AccessOptions
from tests.agent.auth.closed_service import ClosedService, closed_service, terms
from tests.agent.event_platform import EventPlatform
from tests.agent.scripted_model import asks_for, says
from tests.agent.tools_for_tests import BENCH
from tests.cli.run_beckon import beckon

pytestmark = pytest.mark.asyncio(loop_scope="module")

DANGER = asks_for(("test_danger", {}))


@pytest_asyncio.fixture(loop_scope="module")
async def service(platform: EventPlatform) -> AsyncIterator[ClosedService]:
    """A service that is open to its own machine."""
    BENCH.reset()
    async with (
        aiohttp.ClientSession() as session,
        closed_service(
            platform, {"beckon": terms()}, make_authenticator(AccessOptions(host="127.0.0.1"), session)
        ) as made,
    ):
        yield made


async def run(service: ClosedService, *words: str) -> subprocess.CompletedProcess[str]:
    port = str(service.http.base_url.port)
    return await asyncio.to_thread(beckon, *words, settings={"BECKON_PORT": port})


async def test_what_waits_and_what_was_done_is_listed_with_the_ids_to_go_on_with(
    service: ClosedService,
) -> None:
    nothing = await run(service, "approvals")
    service.model.script[:] = [DANGER, DANGER, says("Done.")]
    pending = await run(service, "ask", "--stored", "do it twice")
    (response,) = {word for word in pending.stderr.split() if word.startswith("resp_")}
    first = await run(service, "approvals")
    await run(service, "approve", response)
    second = await run(service, "approvals", "--json")
    (waiting,) = json.loads(second.stdout)
    allowed = await run(service, "approve", waiting["response"])
    late = await run(service, "approve", waiting["id"], "--deny")
    left = await run(service, "approvals")
    listed = await run(service, "runs")
    others = await run(service, "runs", "--status", "failed")
    wrong = await run(service, "runs", "--limit", "0")

    assert nothing.stdout == left.stdout == "no call waits for a person\n"
    assert first.stdout.split()[:2] == [response, "test_danger()"]
    assert "do it twice" in first.stdout
    assert waiting["response"] == f"{response}_2"
    assert (late.returncode, "was approved already" in late.stderr) == (1, True)
    assert allowed.stdout.splitlines()[-1] == "Done."
    assert listed.stdout.split()[:2] == [response, "completed"]
    assert "test_danger ×2" in listed.stdout
    assert others.stdout == "no runs\n"
    assert (wrong.returncode, wrong.stderr) == (2, "beckon: --limit is 0; write a number from 1 to 100\n")


async def test_a_question_waits_for_a_word_and_the_word_brings_the_answer(service: ClosedService) -> None:
    service.model.script[:] = [DANGER, says("Done.")]
    pending = await run(service, "ask", "--stored", "do it")
    called_before = list(BENCH.calls)
    assert "? test_danger()   waits for a person's approval" in pending.stdout, pending.stderr
    (response,) = {word for word in pending.stderr.split() if word.startswith("resp_")}
    allowed = await run(service, "approve", response, "--reason", "it is time")
    again = await run(service, "approve", response)
    otherwise = await run(service, "approve", response, "--deny")

    assert called_before == []
    assert allowed.stdout.splitlines() == ["→ test_danger()", "← test_danger: done", "Done."]
    assert BENCH.calls == ["danger"]
    assert again.returncode == 0  # said twice is said once
    assert (otherwise.returncode, len(otherwise.stderr.splitlines())) == (1, 1)
    assert "was approved already" in otherwise.stderr


async def test_a_denied_call_is_not_made_and_the_reason_is_reported(service: ClosedService) -> None:
    service.model.script[:] = [DANGER, says("Then not.")]
    pending = json.loads((await run(service, "ask", "--stored", "--json", "do it")).stdout)
    ended = await run(service, "approve", pending["response"], "--deny", "--reason", "too risky", "--json")
    assert ended.returncode == 0, ended.stderr
    denied = json.loads(ended.stdout)
    shown = service.model.requests[-1].body["messages"][-1]["content"]

    assert (pending["waiting"], pending["answer"]) == (["test_danger"], "")
    assert (denied["answer"], denied["waiting"]) == ("Then not.", [])
    assert denied["calls"][0]["failed"] is True
    assert "too risky" in shown
    assert BENCH.calls == []


@pytest.mark.parametrize(
    ("response", "said"), [("resp_0", "resp_0"), ("", "no response; write for instance")]
)
async def test_what_cannot_be_allowed_is_one_line(service: ClosedService, response: str, said: str) -> None:
    service.model.script[:] = []
    ended = await run(service, "approve", response)

    assert ended.returncode in (1, 2)
    assert (len(ended.stderr.splitlines()), said in ended.stderr) == (1, True)


async def test_an_answer_that_waits_for_nothing_is_reported_as_such(service: ClosedService) -> None:
    service.model.script[:] = [says("Hello.")]
    made = (await service.http.post("/v1/responses", json={"model": "beckon", "input": "go"})).json()
    ended = await run(service, "approve", made["id"])

    assert ended.returncode == 1
    assert f"{made['id']} waits for nothing; it is completed" in ended.stderr


async def test_one_approval_is_decided_by_its_own_id(service: ClosedService) -> None:
    service.model.script[:] = [asks_for(("test_danger", {}), ("test_danger", {})), says("Done.")]
    await run(service, "ask", "--stored", "do both")
    first, second = json.loads((await run(service, "approvals", "--json")).stdout)

    one = await run(service, "approve", first["id"])
    left = json.loads((await run(service, "approvals", "--json")).stdout)
    other = await run(service, "approve", second["id"], "--deny", "--json")

    assert one.stdout == "approved; what follows: beckon runs\n"
    assert [waiting["id"] for waiting in left] == [second["id"]]
    assert json.loads(other.stdout)["decision"] == "denied"
