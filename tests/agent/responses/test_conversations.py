"""Conversations and lists of items, through OpenAI's own client."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from openai import NotFoundError
from openai.types.conversations import Conversation, ConversationItemList
from openai.types.responses import ResponseItemList

from tests.agent.responses.conftest import StartFace
from tests.agent.responses.running_face import RunningFace
from tests.agent.scripted_model import asks_for, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

ECHO = asks_for(("test_echo", {"text": "x"}))


async def listed(face: RunningFace, path: str, **query: object) -> Mapping[str, object]:
    """Return a list of items that is valid by OpenAI's types, taken strictly."""
    params = {name: str(value) for name, value in query.items()}
    answer = await face.http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    kind = ConversationItemList if "conversations" in path else ResponseItemList
    kind.model_validate_json(answer.content, strict=True)
    document: Mapping[str, object] = answer.json()
    return document


async def test_a_conversation_is_opened_changed_and_deleted(start_face: StartFace) -> None:
    async with start_face() as face:
        opened = await face.openai.conversations.create(metadata={"a": "1"})
        found = await face.openai.conversations.retrieve(opened.id)
        updated = await face.openai.conversations.update(opened.id, metadata={"b": "2"})
        again = await face.openai.conversations.retrieve(opened.id)
        deleted = await face.openai.conversations.delete(opened.id)
        with pytest.raises(NotFoundError):
            await face.openai.conversations.retrieve(opened.id)
        raw = await face.http.post("/v1/conversations")

    assert found == opened
    assert (updated.metadata, again.metadata) == ({"b": "2"}, {"b": "2"})
    assert (deleted.deleted, deleted.object) == (True, "conversation.deleted")
    Conversation.model_validate_json(raw.content, strict=True)


async def test_responses_add_to_their_conversation(start_face: StartFace) -> None:
    async with start_face(ECHO, says("One."), says("Two.")) as face:
        opened = await face.openai.conversations.create(
            items=[{"type": "message", "role": "user", "content": "My name is Ada."}]
        )
        first = await face.ask("first", conversation=opened.id)
        await face.ask("second", conversation={"id": opened.id})
        document = await listed(face, f"/v1/conversations/{opened.id}/items", order="asc")

    assert first["conversation"] == {"id": opened.id}
    sent = [message["content"] for message in face.agent.requests[-1].body["messages"][1:]]
    assert sent == ["My name is Ada.\n\nfirst", None, "x", "One.", "second"]
    items = document["data"]
    assert isinstance(items, list)
    kinds = [(item["type"], item.get("role")) for item in items]
    assert kinds == [
        ("message", "user"),
        ("message", "user"),
        ("mcp_call", None),
        ("message", "assistant"),
        ("message", "user"),
        ("message", "assistant"),
    ]
    assert items[2]["output"] == "x"


async def test_items_are_added_by_hand_listed_page_by_page_and_found(start_face: StartFace) -> None:
    async with start_face() as face:
        opened = await face.openai.conversations.create()
        added = await face.openai.conversations.items.create(
            opened.id,
            items=[
                {"type": "message", "role": "user", "content": "a"},
                {"type": "message", "role": "assistant", "content": "b"},
            ],
        )
        more = await face.openai.conversations.items.create(
            opened.id, items=[{"type": "message", "role": "user", "content": "c"}]
        )
        pages = [
            item.id async for item in face.openai.conversations.items.list(opened.id, limit=1, order="asc")
        ]
        newest = [item.id async for item in face.openai.conversations.items.list(opened.id, limit=2)]
        assert pages[1] is not None
        item = await face.openai.conversations.items.retrieve(pages[1], conversation_id=opened.id)
        with pytest.raises(NotFoundError):
            await face.openai.conversations.items.retrieve("msg_x", conversation_id=opened.id)
        path = f"/v1/conversations/{opened.id}/items"
        empty = await face.http.get(path, params={"after": pages[2], "order": "asc"})
        wrong = await face.http.get(path, params={"after": "msg_x"})
        large = await face.http.get(path, params={"limit": 101})

    assert pages == [item.id for item in (*added.data, *more.data)]
    assert newest == pages[::-1]
    assert item.type == "message"
    assert empty.json()["data"] == []
    assert [wrong.status_code, large.status_code] == [400, 400]


async def test_the_input_of_a_response_is_listed(start_face: StartFace) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}
    async with start_face(ECHO, says("One."), says("Two.")) as face:
        first = await face.ask("first")
        content = [{"type": "input_text", "text": "second"}, image]
        second = await face.ask([{"role": "user", "content": content}], previous_response_id=first["id"])
        path = f"/v1/responses/{second['id']}/input_items"
        newest = await listed(face, path, limit=1)
        whole = await listed(face, path, order="asc")
        pages = [item.id async for item in face.openai.responses.input_items.list(second["id"], limit=1)]

    assert isinstance(newest["data"], list)
    assert isinstance(whole["data"], list)
    assert newest["data"][0]["content"] == [content[0], {**image, "detail": "auto"}]
    assert newest["has_more"] is True
    assert [item["type"] for item in whole["data"]] == ["message", "mcp_call", "message", "message"]
    assert pages == [item["id"] for item in whole["data"]][::-1]
    assert len(set(pages)) == 4


async def test_no_one_sees_the_conversations_of_others(start_face: StartFace) -> None:
    other = {"x-owner": "mallory"}
    async with start_face() as face:
        opened = await face.openai.conversations.create()
        path = f"/v1/conversations/{opened.id}"
        answers = [
            await face.http.get(path, headers=other),
            await face.http.post(path, headers=other, json={"metadata": {}}),
            await face.http.delete(path, headers=other),
            await face.http.get(f"{path}/items", headers=other),
            await face.http.get(f"{path}/items/msg_x", headers=other),
            await face.http.post(f"{path}/items", headers=other, json={"items": []}),
            await face.http.post(
                "/v1/responses", headers=other, json={"input": "x", "conversation": opened.id}
            ),
        ]
        assert (await face.http.get(path)).status_code == 200

    assert {answer.status_code for answer in answers} == {404}
    assert {answer.json()["error"]["code"] for answer in answers} == {"conversation_not_found"}


ITEMS: list[Any] = [
    {"type": "message", "role": "user", "content": "My name is Ada."},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "A name."}]},
    {"type": "message", "role": "assistant", "content": "Hello Ada."},
    {"type": "function_call", "call_id": "c1", "name": "local_time", "arguments": "{}"},
    {"type": "mcp_call", "id": "m1", "name": "test_echo", "arguments": '{"text": "x"}', "output": "x"},
    {"type": "function_call_output", "call_id": "c1", "output": "noon"},
    {"type": "message", "role": "user", "content": "Remember that."},
]


@pytest.mark.parametrize("place", range(len(ITEMS)))
async def test_an_item_is_deleted_and_the_others_keep_their_ids(start_face: StartFace, place: int) -> None:
    async with start_face(says("Done.")) as face:
        conversations = face.openai.conversations
        opened = await conversations.create(items=ITEMS)
        path = f"/v1/conversations/{opened.id}/items"
        before = (await listed(face, path, order="asc"))["data"]
        assert isinstance(before, list)
        gone = before[place]["id"]
        returned = await conversations.items.delete(gone, conversation_id=opened.id)
        after = (await listed(face, path, order="asc"))["data"]
        with pytest.raises(NotFoundError):
            await conversations.items.delete(gone, conversation_id=opened.id)
        added = await conversations.items.create(opened.id, items=[ITEMS[0]])
        response = await face.ask("go", conversation=opened.id)
        sent = json.dumps(face.agent.requests[-1].body["messages"])

    assert returned == opened
    assert after == [item for item in before if item["id"] != gone]
    assert added.data[0].id not in [item["id"] for item in before]
    assert response["status"] == "completed"
    lost = ["My name", "A name.", "Hello Ada.", "local_time", "test_echo", "noon", "Remember"][place]
    assert lost not in sent.replace("My name is Ada.", "", 1 if place == 0 else 0)


async def test_an_item_of_another_callers_conversation_is_not_deleted(start_face: StartFace) -> None:
    async with start_face() as face:
        opened = await face.openai.conversations.create(items=ITEMS[:1])
        path = f"/v1/conversations/{opened.id}/items"
        (item,) = (await face.http.get(path)).json()["data"]
        refused = await face.http.delete(f"{path}/{item['id']}", headers={"x-owner": "mallory"})
        unknown = await face.http.delete(f"{path}/nothing")
        left = (await face.http.get(path)).json()["data"]

    assert [refused.status_code, unknown.status_code] == [404, 404]
    assert refused.json()["error"]["code"] == "conversation_not_found"
    assert unknown.json()["error"]["code"] == "item_not_found"
    assert left == [item]
