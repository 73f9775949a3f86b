"""Runs at `/runs`: lists, steps, events, and what happens while it happens."""

from dataclasses import replace
from typing import Any

import pytest

from beckon_agent.api.runs.documents import exchanged_document
from beckon_agent.core.records import Exchanged
from beckon_contract.correlation import Keyring, SigningKey, mint
from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import RunningFace
from tests.agent.runs.test_run_stream import streamed
from tests.agent.scripted_model import Reply, asks_for, chunk, says, sse
from tests.agent.tools_for_tests import BENCH
from tests.patience import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

Document = dict[str, Any]
ECHO = asks_for(("test_echo", {"text": "é"}))
ANN, BOB = {"x-owner": "ann"}, {"x-owner": "bob"}


def counted(reply: Reply) -> Reply:
    """Return a reply that cost 12 tokens."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return replace(reply, pieces=[*reply.pieces[:-1], sse(chunk(usage=usage))])


async def got(face: RunningFace, path: str, code: int = 200, **query: Any) -> Document:
    """Return what is found at a path."""
    answer = await face.http.get(path, params=query)
    assert answer.status_code == code, answer.text
    if code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
    document: Document = answer.json()
    return document


async def test_a_list_shows_the_question_the_calls_and_the_cost_of_each_run(
    start_face: StartFace,
) -> None:
    async with start_face(counted(ECHO), counted(says("Done.")), says("Hello.")) as face:
        first = await face.ask("say é")
        second = await face.ask("hello")
        listed = await got(face, "/runs")
        one_by_one = await got(face, "/runs", limit=1)
        behind = await got(face, "/runs", limit=1, after=one_by_one["last_id"])

    newer, older = listed["data"]
    assert [newer["id"], older["id"]] == [second["id"], first["id"]]
    assert (listed["first_id"], listed["last_id"], listed["has_more"]) == (newer["id"], older["id"], False)
    assert (older["question"], older["agent"], older["status"]) == ("say é", "beckon", "completed")
    assert older["tools"] == [{"name": "test_echo", "calls": 1}]
    assert older["usage"]["total_tokens"] == first["usage"]["total_tokens"] == 24
    assert older["created_at"] < older["ended_at"] < newer["ended_at"]
    assert newer["tools"] == []
    assert (one_by_one["data"], one_by_one["has_more"]) == ([newer], True)
    assert (behind["data"], behind["has_more"]) == ([older], False)


async def test_a_list_holds_what_was_requested_alone(start_face: StartFace) -> None:
    async with start_face(says("One."), says("Two.")) as face:
        conversation = (await face.http.post("/v1/conversations", json={})).json()["id"]
        in_it = await face.ask("a", conversation=conversation)
        await face.ask("b")

        assert [run["id"] for run in (await got(face, "/runs", conversation=conversation))["data"]] == [
            in_it["id"]
        ]
        assert (await got(face, "/runs", status="failed"))["data"] == []
        assert (await got(face, "/runs", agent="another"))["data"] == []
        assert len((await got(face, "/runs", agent="beckon", status="completed"))["data"]) == 2


@pytest.mark.parametrize(
    ("query", "about"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"status": "odd"}, "status"),
        ({"after": "x"}, "after"),
    ],
)
async def test_a_filter_that_a_list_does_not_have_is_named(
    start_face: StartFace, query: Document, about: str
) -> None:
    async with start_face() as face:
        problem = await got(face, "/runs", 400, **query)

    assert about in problem["detail"]


async def test_a_run_shows_its_steps_with_their_times(start_face: StartFace) -> None:
    both = asks_for(("test_echo", {"text": "x"}), ("test_fail", {"kind": "refuse"}))
    async with start_face(counted(both), counted(says("Done."))) as face:
        made = await face.ask("try both")
        run = await got(face, f"/runs/{made['id']}")

    assert (run["id"], run["question"], run["status"], run["takeovers"]) == (
        made["id"],
        "try both",
        "completed",
        0,
    )
    request, answered = run["steps"]
    echo, fail = request["calls"]
    assert (echo["name"], echo["state"], echo["result"], echo["failed"]) == ("test_echo", "done", "x", False)
    assert (fail["name"], fail["failed"], fail["reason"]) == ("test_fail", True, "tool_failed")
    assert (echo["attempts"], echo["approval"], echo["dead_letter"]) == (1, None, None)
    assert (request["model"], request["usage"]["total_tokens"], run["usage"]["total_tokens"]) == (
        "m (native)",
        12,
        24,
    )
    assert (answered["text"], answered["calls"]) == ("Done.", [])
    moments = [
        run["created_at"],
        request["ended_at"],
        echo["sent_at"],
        echo["finished_at"],
        answered["ended_at"],
        run["ended_at"],
    ]
    assert moments == sorted(moments)
    assert echo["requested_at"] == request["ended_at"]
    assert 0 < request["seconds"] <= request["ended_at"] - run["created_at"]
    assert "test_echo" in request["tools_sent"]


async def test_a_call_that_could_not_be_delivered_shows_why(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_dead", {})), says("Sorry.")) as face:
        made = await face.ask()
        (call,) = (await got(face, f"/runs/{made['id']}"))["steps"][0]["calls"]
        (exchanged,) = (await got(face, f"/runs/{made['id']}/events"))["data"]

    assert (call["failed"], call["reason"]) == (True, "undeliverable")
    assert call["dead_letter"]
    assert exchanged["call"]["type"] == "test.dead"
    assert exchanged["reply"] is None
    assert exchanged["problem"]["detail"] == call["dead_letter"]


async def test_the_events_of_calls_are_there_as_they_were_sent_and_as_they_came(
    start_face: StartFace,
) -> None:
    picture = asks_for(("test_echo", {"text": "é"}), ("test_picture", {}))
    async with start_face(picture, says("Done.")) as face:
        made = await face.ask()
        page = await got(face, f"/runs/{made['id']}/events")
        rest = await got(face, f"/runs/{made['id']}/events", limit=1, after=page["first_id"])
        run = await got(face, f"/runs/{made['id']}")

    echo, media = page["data"]
    assert echo["id"] == echo["call"]["id"] == run["steps"][0]["calls"][0]["event_id"]
    assert (echo["call"]["type"], echo["call"]["data"]) == ("test.echo", {"text": "é"})
    assert echo["call"]["source"] == "/beckon/agents/default/beckon"
    assert (echo["reply"]["type"], echo["reply"]["data"]) == ("test.echo.reply", "é")
    assert media["reply"]["data"]["media_type"] == "image/png"
    assert (rest["data"], rest["has_more"]) == ([media], False)


async def test_an_event_that_was_stored_with_its_token_is_shown_without() -> None:
    token = mint(Keyring([SigningKey.random()]), "shim-0")
    reply = {"event": {"id": "r1", "replyid": token, "data": "1"}}

    shown = exchanged_document(Exchanged("e1", "add", None, reply))

    assert shown["reply"] == {"id": "r1", "replyid": "(token)", "data": "1"}
    assert shown["call"] is None


async def test_a_run_that_waits_for_a_person_says_so_and_goes_on_with_the_word(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_danger", {})), says("Done.")) as face:
        made = await face.ask("do it")
        (listed,) = (await got(face, "/runs"))["data"]
        (waiting,) = (await got(face, "/approvals"))["data"]
        (call,) = (await got(face, f"/runs/{made['id']}"))["steps"][0]["calls"]
        word = {"approve": True, "reason": "go ahead"}
        decided = await face.http.post(f"/approvals/{waiting['id']}", json=word)
        again = await face.http.post(f"/approvals/{waiting['id']}", json=word)
        otherwise = await face.http.post(f"/approvals/{waiting['id']}", json={"approve": False})

        async def has_ended() -> bool:
            return bool((await got(face, f"/runs/{made['id']}"))["ended_at"])

        await eventually(has_ended)
        left = await got(face, "/approvals")
        (done,) = (await got(face, f"/runs/{made['id']}"))["steps"][0]["calls"]

    assert (listed["status"], listed["approvals_waiting"]) == ("suspended", 1)
    assert (waiting["run"], waiting["name"], waiting["question"]) == (made["id"], "test_danger", "do it")
    assert (call["state"], call["approval"]["id"], call["approval"]["decision"]) == (
        "approval",
        waiting["id"],
        None,
    )
    assert waiting["requested_at"] == call["requested_at"]
    assert (
        decided.json()
        == again.json()
        == {
            "id": waiting["id"],
            "object": "approval",
            "run": made["id"],
            "decision": "approved",
        }
    )
    assert otherwise.status_code == 409
    assert "approved already" in otherwise.json()["detail"]
    assert left["data"] == []
    assert BENCH.calls == ["danger"]
    assert (done["approval"]["decision"], done["approval"]["reason"]) == ("approved", "go ahead")
    assert done["approval"]["decided_at"] <= done["sent_at"] <= done["finished_at"]


async def test_a_word_comes_too_late_for_a_run_that_is_over(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_danger", {}))) as face:
        made = await face.ask()
        (waiting,) = (await got(face, "/approvals"))["data"]
        await face.http.post(f"/v1/responses/{made['id']}/cancel")
        late = await face.http.post(f"/approvals/{waiting['id']}", json={"approve": True})

    assert late.status_code == 409
    assert "the run is cancelled" in late.json()["detail"]
    assert BENCH.calls == []


@pytest.mark.parametrize(
    "body",
    [{}, {"approve": "perhaps"}, {"approve": True, "more": 1}, [], {"approve": True, "reason": "x" * 2001}],
)
async def test_a_word_that_is_none_is_refused(start_face: StartFace, body: object) -> None:
    async with start_face(asks_for(("test_danger", {}))) as face:
        await face.ask()
        (waiting,) = (await got(face, "/approvals"))["data"]
        answer = await face.http.post(f"/approvals/{waiting['id']}", json=body)

    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"


async def test_no_one_finds_anything_of_anybody_else(start_face: StartFace) -> None:
    async with start_face(asks_for(("test_danger", {}))) as face:
        face.http.headers.update(ANN)
        opened = (await face.http.post("/v1/conversations", json={})).json()["id"]
        made = await face.ask("a secret", conversation=opened)
        (waiting,) = (await got(face, "/approvals"))["data"]
        hers = await face.http.get(f"/runs/{made['id']}/events", headers={"accept": "application/json"})
        for other in (BOB, {"x-owner": ""}):
            face.http.headers.update(other)
            for path in ("/runs", "/approvals", "/v1/conversations", "/v1/conversations?query=secret"):
                assert (await got(face, path))["data"] == []
            for path in (f"/runs/{made['id']}", f"/runs/{made['id']}/events"):
                await got(face, path, 404)
            assert (await streamed(face, made["id"])).status_code == 404
            await got(face, "/runs", 400, after=made["id"])
            await got(face, "/approvals", 400, after=waiting["id"])
            assert (await face.http.get("/v1/conversations", params={"after": opened})).status_code == 400
            decided = await face.http.post(f"/approvals/{waiting['id']}", json={"approve": True})
            assert decided.status_code == 404
        face.http.headers.update(ANN)
        still = await got(face, "/approvals")

    assert hers.status_code == 200
    assert [one["id"] for one in still["data"]] == [waiting["id"]]
    assert BENCH.calls == []


@pytest.mark.parametrize("path", ["/runs/nothing", "/runs/nothing/events", "/runs/resp_0", "/runs/%00"])
async def test_a_run_that_is_not_there_is_a_404(start_face: StartFace, path: str) -> None:
    async with start_face() as face:
        problem = await got(face, path, 404)

    assert problem["type"].endswith("/unknown-run")


async def test_pages_of_conversations_stay_while_one_of_them_goes_on(
    start_face: StartFace,
) -> None:
    async with start_face(*(says("Yes.") for _ in range(4))) as face:
        names = [(await face.http.post("/v1/conversations", json={})).json()["id"] for _ in range(3)]
        for name in names:
            await face.ask("Hello", conversation=name)
        first = await got(face, "/v1/conversations", limit=2)
        await face.ask("Once more", conversation=names[1])  # the last one of that page
        second = await got(face, "/v1/conversations", limit=2, after=first["last_id"])
        anew = await got(face, "/v1/conversations")
        no_one = await face.http.get("/v1/conversations", params={"after": "conv_x@yesterday"})

    assert [one["id"] for one in first["data"]] == [names[2], names[1]]
    assert [one["id"] for one in second["data"]] == [names[0]]
    assert [one["id"] for one in anew["data"]] == [names[1], names[2], names[0]]
    assert no_one.status_code == 400


async def test_conversations_are_listed_with_titles_and_searched(start_face: StartFace) -> None:
    async with start_face(says("Sunny in Zürich."), says("Hello.")) as face:
        names = [(await face.http.post("/v1/conversations", json={})).json()["id"] for _ in range(2)]
        await face.ask("How is the weather?", conversation=names[0])
        await face.ask("hello", conversation=names[1])
        listed = await got(face, "/v1/conversations")
        by_id = await got(face, "/v1/conversations", limit=1, after=names[1])
        first = await got(face, "/v1/conversations", limit=1)
        second = await got(face, "/v1/conversations", limit=1, after=first["last_id"])
        found = await got(face, "/v1/conversations", query=" ZÜRICH ")
        none = await got(face, "/v1/conversations", query="rain")

    assert [(one["id"], one["title"]) for one in listed["data"]] == [
        (names[1], "hello"),
        (names[0], "How is the weather?"),
    ]
    assert [one["used_at"] >= one["created_at"] for one in listed["data"]] == [True, True]
    assert [page["data"][0]["id"] for page in (first, second, by_id)] == [names[1], names[0], names[0]]
    assert (first["has_more"], second["has_more"]) == (True, False)
    assert [one["id"] for one in found["data"]] == [names[0]]
    assert none["data"] == []
