"""The usage, refusals and failures of the model server reach the client, at both APIs and from the store."""

import asyncio
import json
from typing import Any

import pytest
from openai import AsyncOpenAI, RateLimitError
from openai.types.responses import ResponseOutputMessage, ResponseOutputRefusal
from pydantic import BaseModel

from tests.agent.api.answering import ECHO, Document, chat, chunks_of, respond, stream_response
from tests.agent.auth.closed_service import ClosedService
from tests.agent.responses.running_face import events_of, kinds
from tests.agent.scripted_model import (
    Reply,
    answers,
    asks_for,
    calls,
    chunk,
    fragment,
    refuses,
    says,
    sse,
    streamed,
)
from tests.cli.run_beckon import beckon

pytestmark = pytest.mark.asyncio(loop_scope="module")


def openai_client(service: ClosedService) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{service.http.base_url}/v1", api_key="sk-any", max_retries=0)


def counted(prompt: Document | None, completion: Document | None, *, calling: bool = False) -> Reply:
    """Return an answer with a usage of 10 and 5 tokens, and these details."""
    usage: Document = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    usage |= {"prompt_tokens_details": prompt, "completion_tokens_details": completion}
    begun = asks_for(("test_echo", {"text": "x"})) if calling else streamed(chunk({"content": "Hi."}, "stop"))
    return Reply([*begun.pieces[:-1], sse({"choices": [], "usage": usage})])


DETAILED = [
    counted({"cached_tokens": 4, "audio_tokens": None}, {"reasoning_tokens": 3}, calling=True),
    counted({"cached_tokens": 0, "odd": "7"}, {"reasoning_tokens": 1, "accepted_prediction_tokens": 2}),
]
"""Two answers of one run: the sum is of what is known."""


async def test_usage_has_the_details_of_the_model_server_added_over_the_turns(service: ClosedService) -> None:
    whole = await chat(service, *DETAILED)
    stored = await chat(service, *DETAILED, store=True)
    chunks = await chunks_of(service, *DETAILED)
    response = await respond(service, *DETAILED)
    events = await stream_response(service, *DETAILED)

    expected = {
        "prompt_tokens": 20,
        "completion_tokens": 10,
        "total_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 4, "accepted_prediction_tokens": 2},
    }
    assert [whole["usage"], stored["usage"], chunks[-1]["usage"]] == [expected] * 3
    assert response["usage"] == events[-1]["response"]["usage"]
    assert response["usage"] == {
        "input_tokens": 20,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
        "output_tokens": 10,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 30,
    }


@pytest.mark.parametrize("details", [None, {}, {"cached_tokens": None}, {"cached_tokens": True}, [1]])
async def test_details_that_the_model_server_does_not_report_are_left_out(
    service: ClosedService, details: Any
) -> None:
    whole = await chat(service, counted(details, details))

    assert whole["usage"] == {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


async def test_usage_that_the_model_server_does_not_count_is_null(service: ClosedService) -> None:
    silent = streamed(chunk({"content": "Hi."}, "stop"))
    wholes = [await chat(service, silent), await respond(service, silent)]
    streams = [
        (await chunks_of(service, silent))[-1],
        (await stream_response(service, silent))[-1]["response"],
    ]

    assert [answer["usage"] for answer in wholes + streams] == [None] * 4


REFUSING = streamed(
    chunk({"content": None, "refusal": "I can"}), chunk({"refusal": "not."}), chunk(finish="stop")
)
REFUSED_WHOLE = answers(
    {"choices": [{"index": 0, "message": {"content": None, "refusal": "I cannot."}, "finish_reason": "stop"}]}
)
LATER = [
    streamed(
        chunk({"content": "Let me see."}),
        calls(fragment(0, "c", "test_echo", '{"text":"x"}')),
        chunk(finish="tool_calls"),
    ),
    REFUSING,
]


@pytest.mark.parametrize("script", [[REFUSING], [REFUSED_WHOLE], LATER])
async def test_a_refusal_is_a_refusal_in_chat_completions(
    service: ClosedService, script: list[Reply]
) -> None:
    wholes = [await chat(service, *script), await chat(service, *script, store=True)]
    streams = [await chunks_of(service, *script), await chunks_of(service, *script, store=True)]

    text = "Let me see." if script is LATER else None
    for answer in wholes:
        message = answer["choices"][0]["message"]
        assert (message["content"], message["refusal"]) == (text, "I cannot.")
        assert answer["choices"][0]["finish_reason"] == "stop"
    for chunks in streams:
        deltas = [piece["choices"][0]["delta"] for piece in chunks if piece["choices"]]
        assert "".join(delta.get("refusal", "") for delta in deltas) == "I cannot."
        assert "".join(delta.get("content", "") for delta in deltas) == (text or "")


@pytest.mark.parametrize("script", [[REFUSING], [REFUSED_WHOLE], LATER])
async def test_a_refusal_is_a_refusal_in_responses(service: ClosedService, script: list[Reply]) -> None:
    whole = await respond(service, *script)
    events = await stream_response(service, *script)

    part = {"type": "refusal", "refusal": "I cannot."}
    for answer in (whole, events[-1]["response"]):
        assert (answer["status"], answer["output"][-1]["content"]) == ("completed", [part])
    kinds_of_refusal = [kind for kind in kinds(events) if kind.startswith("refusal")]
    assert kinds_of_refusal == ["refusal.delta", "refusal.done"]
    (done,) = (event for event in events if event["type"] == "response.refusal.done")
    assert done["refusal"] == "I cannot."
    added = [event["part"] for event in events if event["type"] == "response.content_part.added"]
    assert added[-1] == {"type": "refusal", "refusal": ""}


class Verdict(BaseModel):
    """An answer with a schema."""

    good: bool


async def test_the_parsers_of_the_openai_package_return_a_refusal(service: ClosedService) -> None:
    service.model.script[:] = [REFUSING] * 3
    async with openai_client(service) as client:
        completion = await client.chat.completions.parse(
            model="beckon", messages=[{"role": "user", "content": "go"}], response_format=Verdict
        )
        async with client.chat.completions.stream(
            model="beckon", messages=[{"role": "user", "content": "go"}], response_format=Verdict
        ) as stream:
            streamed_ = await stream.get_final_completion()
        response = await client.responses.parse(model="beckon", input="go", text_format=Verdict)

    for message in (completion.choices[0].message, streamed_.choices[0].message):
        assert (message.refusal, message.parsed) == ("I cannot.", None)
    (item,) = response.output
    assert isinstance(item, ResponseOutputMessage)
    assert item.content == [ResponseOutputRefusal(type="refusal", refusal="I cannot.")]
    assert response.output_parsed is None


async def test_a_refusal_is_in_the_run_its_conversation_and_the_next_request(service: ClosedService) -> None:
    conversation = (await service.http.post("/v1/conversations", json={})).json()["id"]
    refused = await respond(service, REFUSING, conversation=conversation)
    service.model.requests.clear()
    await respond(service, says("Well."), conversation=conversation)
    items = (await service.http.get(f"/v1/conversations/{conversation}/items?order=asc")).json()["data"]
    run = (await service.http.get(f"/runs/{refused['id']}")).json()
    replay = await service.http.post(f"/runs/{refused['id']}/replay", json={})

    assert service.model.requests[0].body["messages"][2] == {"role": "assistant", "content": "I cannot."}
    assert items[1]["content"] == [{"type": "refusal", "refusal": "I cannot."}]
    assert run["steps"][0]["text"] == "I cannot."
    assert '"differences":[]' in replay.text.replace(" ", "")


@pytest.mark.parametrize("options", [[], ["--stored"]])
async def test_a_refusal_is_shown_on_the_terminal(service: ClosedService, options: list[str]) -> None:
    service.model.script[:] = [REFUSING]
    port = {"BECKON_PORT": str(service.http.base_url.port)}
    ended = await asyncio.to_thread(beckon, "ask", *options, "go", settings=port)

    assert (ended.returncode, ended.stdout.strip()) == (0, "I cannot.")


async def test_a_refusal_that_a_client_sends_back_reaches_the_model(service: ClosedService) -> None:
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        {"role": "user", "content": "Please."},
    ]
    service.model.requests.clear()
    await chat(service, says("Well."), messages=history)

    assert service.model.requests[0].body["messages"][2] == {"role": "assistant", "content": "I cannot."}


CODES = {429: "rate_limit_exceeded", 503: "overloaded"}


@pytest.mark.parametrize(
    ("status", "wait", "shown"),
    [(429, "90", "90"), (503, "61.5", "62"), (503, "inf", "86400"), (503, "", "1")],
)
@pytest.mark.parametrize("store", [False, True])
async def test_a_model_server_without_room_is_so_at_chat_completions(
    service: ClosedService, status: int, wait: str, shown: str, store: bool
) -> None:
    refusal = refuses(status, "slow down", **({"retry-after": wait} if wait else {}))
    service.model.script[:] = [refusal, refusal]
    for answer in [
        await service.chat("beckon", None, store=store),
        await service.chat("beckon", None, store=store, stream=True),
    ]:
        assert (answer.status_code, answer.headers["retry-after"]) == (status, shown)
        error = answer.json()["error"]
        assert error["code"] == CODES[status]
        assert error["type"] == ("rate_limit_error" if status == 429 else "server_error")
        assert "slow down" in error["message"]


@pytest.mark.parametrize(("status", "wait", "shown"), [(429, "90", "90"), (503, "", "1")])
async def test_a_model_server_without_room_is_so_at_responses(
    service: ClosedService, status: int, wait: str, shown: str
) -> None:
    refusal = refuses(status, "slow down", **({"retry-after": wait} if wait else {}))
    service.model.script[:] = [refusal, refusal]
    body = {"model": "beckon", "input": "go", "include": ["mcp_call"]}
    whole = await service.http.post("/v1/responses", json=body)
    events = events_of(await service.http.post("/v1/responses", json={**body, "stream": True}))

    assert (whole.status_code, whole.headers["retry-after"]) == (status, shown)
    assert whole.json()["error"]["code"] == CODES[status]
    assert (events[-2]["type"], events[-2]["code"]) == ("error", CODES[status])
    assert events[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("status", [429, 503])
async def test_a_stream_that_began_names_the_error_of_the_model_server(
    service: ClosedService, status: int
) -> None:
    broken = streamed(chunk({"content": "Well"}), {"error": {"message": "slow down", "code": status}})
    for script in ([ECHO, refuses(status, "slow down")], [broken]):
        service.model.script[:] = script
        text = (await service.chat("beckon", None, stream=True, beckon={"events": True})).text
        error = json.loads(text.strip().splitlines()[-1].removeprefix("data: "))["error"]
        assert error["code"] == CODES[status]


SPENT = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}


@pytest.mark.parametrize("refusal", [answers(SPENT, 429), refuses(402, "Insufficient Balance")])
@pytest.mark.parametrize("store", [False, True])
async def test_an_account_with_nothing_left_is_a_429_that_openai_s_package_does_not_repeat(
    service: ClosedService, refusal: Reply, store: bool
) -> None:
    service.model.script[:] = [refusal] * 3
    service.model.requests.clear()
    async with openai_client(service).with_options(max_retries=2) as client:
        with pytest.raises(RateLimitError) as completion:
            await client.chat.completions.create(
                model="beckon", messages=[{"role": "user", "content": "go"}], store=store
            )
        with pytest.raises(RateLimitError) as response:
            await client.responses.create(model="beckon", input="go")
        stream = await client.responses.create(model="beckon", input="go", stream=True)
        events = [event async for event in stream]

    for error in (completion.value, response.value):
        assert (error.code, error.type) == ("insufficient_quota", "insufficient_quota")
        assert "retry-after" not in error.response.headers
    assert events[-2].type == "error"
    assert events[-2].code == "insufficient_quota"
    assert len(service.model.requests) == 3


@pytest.mark.parametrize("status", [500, 504, 529])
async def test_other_failures_of_the_model_server_are_502(service: ClosedService, status: int) -> None:
    service.model.script[:] = [refuses(status, "oops", **{"retry-after": "90"})] * 2
    answer = await service.chat("beckon", None)
    response = await service.http.post("/v1/responses", json={"model": "beckon", "input": "go"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "model_error")
    assert response.status_code == 502
    assert not {"retry-after"} & (answer.headers.keys() | response.headers.keys())


async def test_a_long_integer_of_a_result_is_whole_in_responses(service: ClosedService) -> None:
    script = asks_for(("test_measure", {"digits": 30})), says("done")
    whole = await respond(service, *script)
    events = await stream_response(service, *script)
    run = (await service.http.get(f"/runs/{whole['id']}")).json()

    for answer in (whole, events[-1]["response"]):
        assert json.loads(answer["output"][0]["output"]) == {"long": int("1" * 30)}
    assert run["steps"][0]["calls"][0]["result"] == {"long": int("1" * 30)}
