"""The message that an event becomes for the model, and the events that become none."""

import pytest

from beckon_agent.api.events.messages import message_of
from beckon_contract.cloudevents.events import CloudEvent, EventError
from tests.agent.events.answering_agent import answering_agent, asking, event, problem

REST = 'Why?\n\n{"order": 12345678901234567890123, "n": [1.0]}'


def of(data: bytes | None, content_type: str | None = "application/json", **attributes: str) -> CloudEvent:
    return CloudEvent("e1", "/shop", "order.created", data, content_type, **attributes)  # type: ignore[arg-type]  # only strings


@pytest.mark.parametrize(
    ("received", "text"),
    [
        (of(b'{"question": "Why?"}'), "Why?"),
        (of(b'{"question": "Why?"}', None), "Why?"),
        (of(b'{"question": "Why?", "order": 12345678901234567890123, "n": [1.0]}'), REST),
        (of(b'"Why?"'), "Why?"),
        (of("Warum? Größe!".encode(), "text/plain; charset=utf-8"), "Warum? Größe!"),
        (of(b'{"order": 7}'), 'An event has come.\ntype: order.created\nsource: /shop\ndata:\n{"order": 7}'),
        (
            of(b'{"question": 7}'),
            'An event has come.\ntype: order.created\nsource: /shop\ndata:\n{"question": 7}',
        ),
        (
            of(b'{"question": " "}'),
            'An event has come.\ntype: order.created\nsource: /shop\ndata:\n{"question": " "}',
        ),
        (of(b" [1, 2e0]\n"), "An event has come.\ntype: order.created\nsource: /shop\ndata:\n[1, 2e0]"),
        (
            of(None, None, subject="7", time="2026-01-31T09:30:00Z"),
            "An event has come.\ntype: order.created\nsource: /shop\nsubject: 7\ntime: 2026-01-31T09:30:00Z",
        ),
    ],
)
def test_a_question_is_reported_as_it_is_and_all_else_as_an_event(received: CloudEvent, text: str) -> None:
    assert message_of(received, awaited=True) == {"role": "user", "content": text}


@pytest.mark.parametrize(
    ("data", "content_type", "said"),
    [
        (b'{"question": ', "application/json", "not JSON"),
        (b'{"question": "a", "question": "b"}', "application/json", "not JSON"),
        (b"[" * 600 + b"]" * 600, "application/json", "cannot be read"),
        (b"\xff\xfe", "text/plain", "not UTF-8"),
    ],
)
def test_data_that_is_not_what_it_is_declared_to_be_is_refused(
    data: bytes, content_type: str, said: str
) -> None:
    with pytest.raises(EventError, match=said):
        message_of(of(data, content_type), awaited=True)


async def test_what_is_no_event_is_refused_with_the_cause_and_asks_no_model() -> None:
    async with answering_agent() as agent:
        headers = {"content-type": "application/json"}
        plain = await agent.http.post("/events", content=b'{"question": "Why?"}', headers=headers)
        batch = {"content-type": "application/cloudevents-batch+json"}
        many = await agent.http.post("/events", content=b"[]", headers=batch)
        picture = await agent.send(of(b"\x89PNG", "image/png"))
        broken = await agent.send(of(b'{"question":'))

        assert "specversion" in problem(plain, 400)
        assert "one by one" in problem(many, 415)
        assert "image/png" in problem(picture, 415)
        assert "not JSON" in problem(broken, 400)
        assert agent.requests == []
        assert agent.asks == []


async def test_a_body_above_the_limit_is_not_read() -> None:
    async with answering_agent() as agent:
        response = await agent.send(asking("x" * 100_001))

        assert "larger than 100000 bytes" in problem(response, 413)


@pytest.mark.parametrize(
    ("attributes", "named"),
    [
        ({"beckondepth": "two"}, "beckondepth"),
        ({"beckonbudget": "1.5"}, "beckonbudget"),
        ({"expirytime": "soon"}, "expirytime"),
    ],
)
async def test_an_attribute_that_cannot_be_read_is_named(attributes: dict[str, str], named: str) -> None:
    async with answering_agent() as agent:
        response = await agent.send(event({}, **attributes))

        assert named in problem(response, 400)
        assert agent.requests == []


async def test_an_event_whose_data_has_no_media_type_is_refused() -> None:
    async with answering_agent() as agent:
        response = await agent.send(asking(), headers={"content-type": "xyz"})
    assert "no media type: 'xyz'" in problem(response, 400)
