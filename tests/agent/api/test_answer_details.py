"""Log probabilities, annotations and the fingerprint of an answer reach the client, also from the store."""

from itertools import chain
from typing import Any

import pytest

from tests.agent.api.answering import ECHO, Document, chat, chunks_of, respond, stream_response
from tests.agent.auth.closed_service import ClosedService
from tests.agent.conftest import StartAgent
from tests.agent.running_agent import Setup, payloads
from tests.agent.scripted_model import Reply, answers, calls, chunk, fragment, says, streamed

pytestmark = pytest.mark.asyncio(loop_scope="module")


def token(text: str, logprob: float = -0.5, **members: Any) -> Document:
    """Return a token as OpenAI writes it, with one other token at its place."""
    other = {"token": "no", "logprob": -2.0, "bytes": None}
    return {
        "token": text,
        "logprob": logprob,
        "bytes": list(text.encode()),
        "top_logprobs": [other],
        **members,
    }


def scored(delta: Document, *tokens: Document, side: str = "content", finish: str | None = None) -> Document:
    """Return a chunk with log probabilities."""
    piece = chunk(delta, finish)
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": {side: list(tokens)}}
    return {**piece, "choices": [choice]}


SCORED = streamed(
    scored({"content": "Well"}, token("We"), token("ll")),
    scored({"content": ""}, token("\ufffd", bytes=[226, 130])),  # a half of the next character
    scored({"content": "€"}, token("\ufffd", bytes=[172])),
    scored({}, finish="stop"),
)
SCORED_WHOLE = answers(
    {
        "choices": [
            {
                "index": 0,
                "message": {"reasoning_content": "hm", "content": "Well€"},
                "logprobs": {
                    "content": [
                        token("We"),
                        token("ll"),
                        token("\ufffd", bytes=[226, 130]),
                        token("\ufffd", bytes=[172]),
                    ]
                },
                "finish_reason": "stop",
            }
        ]
    }
)
TOKENS = [token("We"), token("ll"), token("\ufffd", bytes=[226, 130]), token("\ufffd", bytes=[172])]


@pytest.mark.parametrize("script", [[SCORED], [SCORED_WHOLE], [ECHO, SCORED]])
async def test_log_probabilities_come_with_the_text_of_their_tokens(
    service: ClosedService, script: list[Reply]
) -> None:
    whole = await chat(service, *script, store=True)
    chunks = await chunks_of(service, *script)
    response = await respond(service, *script)
    events = await stream_response(service, *script)

    assert whole["choices"][0]["logprobs"] == {"content": TOKENS, "refusal": None}
    choices = [piece["choices"][0] for piece in chunks if piece["choices"]]
    scored_ = [(one["delta"]["content"], one["logprobs"]["content"]) for one in choices if one["logprobs"]]
    assert [one for _, tokens in scored_ for one in tokens] == TOKENS
    for text, tokens in scored_:
        assert bytes(chain.from_iterable(one["bytes"] for one in tokens)).decode() == text
    shown = [
        {**one, "top_logprobs": [{"token": "no", "logprob": -2.0, "bytes": [110, 111]}]} for one in TOKENS
    ]
    deltas = [event["logprobs"] for event in events if event["type"] == "response.output_text.delta"]
    (done,) = (event for event in events if event["type"] == "response.output_text.done")
    assert list(chain.from_iterable(deltas)) == done["logprobs"] == shown
    for answer in (response, events[-1]["response"]):
        assert answer["output"][-1]["content"][0]["logprobs"] == shown


async def test_log_probabilities_of_a_refusal(service: ClosedService) -> None:
    reply = streamed(
        scored({"refusal": "I can"}, token("I can"), side="refusal"),
        scored({"refusal": "not."}, token("not."), side="refusal", finish="stop"),
    )
    whole = await chat(service, reply)
    chunks = await chunks_of(service, reply)

    assert whole["choices"][0]["logprobs"] == {"content": None, "refusal": [token("I can"), token("not.")]}
    choices = [piece["choices"][0] for piece in chunks if piece["choices"]]
    found = [choice["logprobs"]["refusal"] for choice in choices if choice["logprobs"]]
    assert found == [[token("I can")], [token("not.")]]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"token": "a", "logprob": float("-inf")}, {"token": "a", "logprob": -9999.0}),
        ({"token": "a", "logprob": None, "bytes": "x"}, {"token": "a", "logprob": -9999.0}),
        ({"token": "a", "logprob": 10**400, "bytes": [256]}, {"token": "a", "logprob": -9999.0}),
        ({"token": "a", "logprob": -1, "top_logprobs": None}, {"token": "a", "logprob": -1}),
        ({"token": 7, "logprob": -1}, None),
        ("a", None),
    ],
)
async def test_odd_log_probabilities_become_valid_or_are_left_out(
    service: ClosedService, given: Any, shown: Document | None
) -> None:
    whole = await chat(service, streamed(scored({"content": "a"}, given), chunk(finish="stop")))

    full = shown and {"bytes": None, "top_logprobs": [], **shown}
    assert whole["choices"][0]["logprobs"] == (full and {"content": [full], "refusal": None})


async def test_reasoning_that_is_taken_out_of_the_text_takes_the_log_probabilities(
    service: ClosedService,
) -> None:
    whole = await chat(
        service,
        streamed(
            scored({"content": "<think>hm</think>"}, token("hm")),
            scored({"content": "a"}, token("a"), finish="stop"),
        ),
    )
    thought = await chat(
        service,
        streamed(
            scored({"reasoning_content": "hm"}, token("hm")),
            scored({"content": "a"}, token("a"), finish="stop"),
        ),
    )

    for answer in (whole, thought):
        assert answer["choices"][0]["logprobs"]["content"] == [token("a")]


async def test_a_text_dialect_has_no_log_probabilities(start_agent: StartAgent) -> None:
    async with start_agent(SCORED, SCORED, setup=Setup(dialect="hermes")) as agent:
        whole = (await agent.post()).json()
        chunks = payloads((await agent.post(stream=True)).text)

    assert whole["choices"][0]["message"]["content"] == "Well€"
    assert [choice["logprobs"] for piece in [whole, *chunks] for choice in piece["choices"]] == [None] * (
        len(chunks) + 1
    )


CITED = {"url": "https://a.example/", "title": "A", "start_index": 1, "end_index": 3}
ANNOTATED = streamed(
    chunk({"content": "Sources."}),
    chunk({"annotations": [{"type": "url_citation", "url_citation": CITED}]}),
    chunk(
        {"annotations": [{"type": "url_citation", "url_citation": CITED}, {"type": "file"}]},
        "stop",
    ),
)
FIRST = streamed(
    chunk({"content": "Let me see."}),
    calls(fragment(0, "c", "test_echo", '{"text":"x"}')),
    chunk(finish="tool_calls"),
)


@pytest.mark.parametrize("script", [[ANNOTATED], [FIRST, ANNOTATED]])
async def test_annotations_have_their_places_in_the_text_of_the_answer(
    service: ClosedService, script: list[Reply]
) -> None:
    whole = await chat(service, *script, store=True)
    chunks = await chunks_of(service, *script)
    response = await respond(service, *script)
    events = await stream_response(service, *script)

    message = whole["choices"][0]["message"]
    cited = message["annotations"][0]["url_citation"]
    assert message["content"][cited["start_index"] : cited["end_index"]] == "ou"
    assert len(message["annotations"]) == 1
    deltas = [piece["choices"][0]["delta"] for piece in chunks if piece["choices"]]
    assert [one for delta in deltas for one in delta.get("annotations", [])] == message["annotations"]
    (added,) = (event for event in events if event["type"] == "response.output_text.annotation.added")
    for answer in (response, events[-1]["response"]):
        part = answer["output"][-1]["content"][0]
        (annotation,) = part["annotations"]
        assert part["text"][annotation["start_index"] : annotation["end_index"]] == "ou"
        assert (annotation["type"], annotation["url"]) == ("url_citation", "https://a.example/")
        assert (added["annotation_index"], added["annotation"]) == (0, annotation)


async def test_citations_that_come_after_later_reasoning_are_in_the_message_of_their_text(
    service: ClosedService,
) -> None:
    later = {**CITED, "url": "https://b.example/", "start_index": 13, "end_index": 17}
    cited = [{"type": "url_citation", "url_citation": one} for one in (CITED, later)]
    script = streamed(
        chunk({"content": "The sources."}),
        chunk({"reasoning_content": "Hm."}),
        chunk({"content": " More."}),
        chunk({"reasoning_content": "Enough."}),
        chunk({"annotations": cited}, "stop"),
    )
    response = await respond(service, script)
    events = await stream_response(service, script)

    for answer in (response, events[-1]["response"]):
        output = answer["output"]
        assert [item["type"] for item in output] == ["message", "reasoning"] * 2
        found = {
            part["text"][one["start_index"] : one["end_index"]]: one["url"]
            for item in output[::2]
            for part in item["content"]
            for one in part["annotations"]
        }
        assert found == {"he": CITED["url"], "More": later["url"]}
    ends = [event for event in events if event["type"] == "response.output_item.done"]
    assert [event["item"] for event in sorted(ends, key=lambda event: event["output_index"])] == output


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"type": "url_citation", "url": "u"}, {"url": "u", "title": "", "start_index": 0, "end_index": 0}),
        ({"type": "url_citation", "url_citation": {**CITED, "end_index": "3"}}, {**CITED, "end_index": 0}),
        ({"url": "u"}, None),
        ("u", None),
    ],
)
async def test_odd_annotations_become_valid_or_are_left_out(
    service: ClosedService, given: Any, shown: Document | None
) -> None:
    body = {"message": {"content": "Sources.", "annotations": [given]}, "finish_reason": "stop"}
    message = (await chat(service, answers({"choices": [body]})))["choices"][0]["message"]

    expected = shown and [{"type": "url_citation", "url_citation": shown}]
    assert message.get("annotations") == expected


async def test_the_fingerprint_of_the_model_server_is_shown(service: ClosedService) -> None:
    fingerprinted = streamed(
        {**chunk({"content": "Hi."}), "system_fingerprint": "fp_1"}, chunk(finish="stop")
    )
    whole = await chat(service, fingerprinted, store=True)
    chunks = await chunks_of(service, fingerprinted)
    without = await chat(service, says("Hi."))

    assert whole["system_fingerprint"] == "fp_1"
    assert {piece["system_fingerprint"] for piece in chunks if "system_fingerprint" in piece} == {"fp_1"}
    assert "system_fingerprint" not in without


async def test_a_replay_says_the_details_again(service: ClosedService) -> None:
    detailed = [
        {**scored({"content": "Well"}, token("Well")), "system_fingerprint": "fp_1"},
        chunk({"annotations": [{"type": "url_citation", "url_citation": CITED}]}, "stop"),
    ]
    run = (await respond(service, FIRST, streamed(*detailed)))["id"]
    replay = await service.http.post(f"/runs/{run}/replay", json={})

    assert '"differences":[]' in replay.text.replace(" ", "")


async def test_citations_are_in_the_items_of_a_conversation_and_not_in_the_next_request(
    service: ClosedService,
) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()["id"]
    await respond(service, ANNOTATED, conversation=conversation)
    service.model.requests.clear()
    await respond(service, says("Well."), conversation=conversation)
    items = (await service.http.get(f"/v1/conversations/{conversation}/items?order=asc")).json()["data"]

    assert items[1]["content"][0]["annotations"] == [{"type": "url_citation", **CITED}]
    assert service.model.requests[0].body["messages"][2] == {"role": "assistant", "content": "Sources."}


async def test_json_that_comes_out_of_its_fence_has_no_log_probabilities(service: ClosedService) -> None:
    fenced = streamed(scored({"content": "```json\n{}\n```"}, token("{}"), finish="stop"))
    whole = await chat(service, fenced, store=True, response_format={"type": "json_object"})
    past = await service.store.runs.load_past(whole["id"])

    assert (whole["choices"][0]["message"]["content"], whole["choices"][0]["logprobs"]) == ("{}", None)
    assert past.turns[0].details.logprobs == ()
