"""Parts of A2A messages as content for a model, and a run's messages as parts."""

import base64
from typing import Any

import pytest
from a2a.helpers.proto_helpers import new_data_part
from a2a.types.a2a_pb2 import Message, Part
from a2a.utils.errors import InvalidParamsError

from beckon_agent.api.a2a.messages import to_agent_message, to_chat_message, to_history
from beckon_agent.api.http.errors import ApiError

BYTES = b"\x00\x01"
ENCODED = base64.b64encode(BYTES).decode("ascii")
PDF = f"data:application/pdf;base64,{ENCODED}"


def _content(*parts: Part) -> Any:
    return to_chat_message(Message(parts=parts)).get("content")


def test_texts_and_data_are_one_text() -> None:
    data = {"b": [1.0, 1.5, "x"], "a": {"n": None}}

    assert _content(Part(text="hello"), new_data_part(data)) == 'hello\n{"a":{"n":null},"b":[1,1.5,"x"]}'
    assert _content(Part(raw="ü".encode(), media_type="text/plain")) == "ü"


@pytest.mark.parametrize(
    ("part", "content"),
    [
        (
            Part(url="https://host/a.png", media_type="image/png"),
            {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
        ),
        (
            Part(raw=BYTES, media_type="image/png"),
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}},
        ),
        (
            Part(raw=BYTES, media_type="audio/mpeg"),
            {"type": "input_audio", "input_audio": {"data": ENCODED, "format": "mp3"}},
        ),
        (
            Part(raw=BYTES, media_type="application/pdf", filename="a.pdf"),
            {
                "type": "file",
                "file": {"filename": "a.pdf", "file_data": PDF},
            },
        ),
        (
            Part(raw=BYTES),
            {
                "type": "file",
                "file": {"filename": "file", "file_data": f"data:application/octet-stream;base64,{ENCODED}"},
            },
        ),
    ],
)
def test_other_parts_are_images_sounds_and_files(part: Part, content: dict[str, Any]) -> None:
    assert _content(Part(text="see"), part) == [{"type": "text", "text": "see"}, content]


def test_a_file_at_an_address_is_refused_with_the_cure() -> None:
    with pytest.raises(ApiError, match="send the bytes as 'raw'"):
        _content(Part(url="https://host/a.pdf", media_type="application/pdf"))


def test_a_part_without_content_is_refused_by_its_place() -> None:
    with pytest.raises(InvalidParamsError, match=r"message\.parts\[1\]"):
        _content(Part(text="x"), Part(media_type="text/plain"))


def test_the_history_has_what_the_client_said_without_the_bytes() -> None:
    image = {"type": "image_url", "image_url": {"url": "https://host/a.png"}}
    inline = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}}
    sound = {"type": "input_audio", "input_audio": {"data": ENCODED, "format": "mp3"}}
    given: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, image, inline, sound]},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "and?"},
        {"role": "user"},
    ]
    history = list(to_history(given, "m1", "t1", "c1"))

    assert [each.message_id for each in history] == ["m1", "m1.2", "m1.3"]
    assert {(each.task_id, each.context_id) for each in history} == {("t1", "c1")}
    assert [[part.text or part.url for part in each.parts] for each in history] == [
        ["see", "https://host/a.png"],
        ["and?"],
        [],
    ]


def test_the_same_parts_of_a_task_have_the_same_id() -> None:
    first, second, other = (to_agent_message("t1", "c1", [Part(text=text)]) for text in ("a", "a", "b"))

    assert first.message_id == second.message_id != other.message_id
    assert first.message_id.startswith("t1.")
