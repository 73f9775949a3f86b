"""What a tool answers over HTTP, to the broker that delivers its calls."""

import base64
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated

import pytest
from cloudevents.core.v1.event import CloudEvent as PublicEvent
from pydantic import BaseModel, Field

from beckon_contract.cloudevents.events import from_http, to_binary, to_structured
from beckon_tools import DeclarationError, Media, ToolError, tool
from beckon_tools.declaration import AnyTool
from tests.tools.serving import JSON, call, calling

SECRET = "password-1234"


class Answer(BaseModel):
    text: str
    size: int


@dataclass
class Point:
    x: int


@tool(type="shout")
async def shout(text: Annotated[str, Field(description="What to shout")], times: int = 1) -> str:
    """Shout a text.

    Not part of the description.
    """
    return text.upper() * times


@tool(type="fail")
async def fail(reason: str) -> str:
    """Fail for good."""
    raise ToolError(reason)


@tool(type="crash")
async def crash() -> str:
    """Fail unexpectedly."""
    raise RuntimeError(SECRET)


@tool(type="look")
async def look(event: PublicEvent | None = None) -> dict[str, object]:
    """Look at the call itself."""
    assert event is not None
    return {
        "id": event.get_id(),
        "type": event.get_type(),
        "time": str(event.get_time()),
        "extension": event.get_extension("colour"),
    }


@dataclass
class Loss:
    value: float


@tool(type="give")
async def give(what: str) -> object:
    """Give a value of the kind that is named."""
    values: dict[str, object] = {
        "model": Answer(text="a", size=1),
        "dataclass": Point(2),
        "none": None,
        "list": [1, {"a": True}],
        "number": 1.5,
        "infinite": [float("inf")],
        "no number": Loss(float("nan")),
        "integer": {"long": 2**80, "word": "NaN, Infinity"},
        "bytes": b"\x00\xff",
        "media": Media("audio/wav", b"RIFF"),
        "object": object(),
        "large": "x" * 2000,
    }
    return values[what]


async def test_a_call_is_answered_with_a_reply_event_of_another_type() -> None:
    async with calling(shout) as caller:
        reply = await caller.reply(call("shout", {"text": "hi", "times": 2}))
    assert reply.json() == "HIHI"
    assert (reply.type, reply.source, reply.datacontenttype) == ("shout.reply", "/beckon/tools/shout", JSON)
    assert reply.extensions["replyid"] == "token-1"
    assert reply.extensions["causationid"] == "call-1"
    assert reply.id not in ("", "call-1")
    assert "correlationid" not in reply.extensions


async def test_a_structured_call_is_read_as_well() -> None:
    async with calling(shout) as caller:
        headers, body = to_structured(call("shout", {"text": "hi"}))
        response = await caller.client.post("/", headers=headers, content=body)
    assert from_http(response.headers.raw, response.content).json() == "HI"


async def test_a_call_that_no_one_waits_for_is_answered_without_reply_attribute() -> None:
    async with calling(shout) as caller:
        reply = await caller.reply(call("shout", {"text": "hi"}).without("correlationid"))
    assert reply.json() == "HI"
    assert "replyid" not in reply.extensions


async def test_the_reply_carries_the_trace_and_what_counts_hops_of_brokers_and_agents() -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}
    async with calling(shout) as caller:
        counted = {"knativebrokerttl": "7", "beckondepth": "2", "beckonbudget": "90"}
        reply = await caller.reply(call("shout", {"text": "a"}, **trace, **counted, other="no"))
    assert {name: reply.extensions.get(name) for name in trace} == trace
    assert {name: reply.extensions.get(name) for name in counted} == counted
    assert "other" not in reply.extensions


async def test_the_first_prototype_wants_the_event_id_in_responseid() -> None:
    async with calling(shout, correlation_attribute="id", reply_attribute="responseid") as caller:
        reply = await caller.reply(call("shout", {"text": "a"}, id="call-9"))
    assert reply.extensions["responseid"] == "call-9"
    assert "replyid" not in reply.extensions


@pytest.mark.parametrize(
    ("what", "result"),
    [
        ("model", {"text": "a", "size": 1}),
        ("dataclass", {"x": 2}),
        ("none", None),
        ("list", [1, {"a": True}]),
        ("number", 1.5),
        ("integer", {"long": 2**80, "word": "NaN, Infinity"}),
        ("bytes", {"media_type": "application/octet-stream", "data_base64": "AP8="}),
        ("media", {"media_type": "audio/wav", "data_base64": base64.b64encode(b"RIFF").decode()}),
    ],
)
async def test_any_result_that_json_can_say_is_the_data_of_the_reply(what: str, result: object) -> None:
    async with calling(give) as caller:
        assert await caller.result(call("give", {"what": what})) == result


@pytest.mark.parametrize(
    ("what", "named"), [("object", "object"), ("infinite", "Infinity is not"), ("no number", "NaN is not")]
)
async def test_a_result_that_json_cannot_say_is_a_failure_and_not_retried(what: str, named: str) -> None:
    async with calling(give) as caller:
        result = await caller.result(call("give", {"what": what}))
    assert isinstance(result, dict)
    assert result["error"]["reason"] == "tool_failed"
    assert result["error"]["message"].startswith("the tool ran, but its result cannot be written as JSON: ")
    assert named in result["error"]["message"]


async def test_a_call_whose_data_has_no_media_type_is_refused() -> None:
    async with calling(shout) as caller:
        headers, body = to_binary(call("shout", {"text": "hi"}))
        named = [(name, "xyz" if name == "content-type" else value) for name, value in headers]
        response = await caller.client.post("/", headers=named, content=body)
    assert response.status_code == 400
    assert "no media type: 'xyz'" in response.json()["detail"]


async def test_a_result_above_the_limit_is_a_failure() -> None:
    async with calling(give, max_event_bytes=49_576) as caller:
        result = await caller.result(call("give", {"what": "large"}))
    assert isinstance(result, dict)
    assert "2002 bytes is above the limit of 1000" in result["error"]["message"]


async def test_a_tool_error_is_a_reply_that_the_model_can_read() -> None:
    async with calling(fail) as caller:
        reply = await caller.reply(call("fail", {"reason": "no such city: Ätlantis"}))
    assert reply.type == "fail.reply"
    assert reply.extensions["replyid"] == "token-1"
    assert reply.json() == {"error": {"reason": "tool_failed", "message": "no such city: Ätlantis"}}


def shout_into(received: list[str]) -> AnyTool:
    """Return a tool that notes each run."""

    @tool(type="shout")
    async def shout(text: str, times: int = 1) -> str:
        """Shout a text."""
        received.append(text)
        return text.upper() * times

    return shout


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "text: Field required"),
        ({"text": 5}, "text: "),
        ({"text": "a", "times": "2"}, "times: "),
        ({"text": "a", "colour": "red"}, "colour: unknown parameter"),
        ([1], "arguments: "),
    ],
)
async def test_bad_arguments_are_refused_by_a_reply_that_names_them(arguments: object, named: str) -> None:
    received: list[str] = []
    async with calling(shout_into(received)) as caller:
        assert named in await caller.refusal(call("shout", arguments))
        assert await caller.result(call("shout", {"text": "a"}, id="call-2")) == "A"
    assert received == ["a"]


async def test_a_refusal_is_a_reply_event_like_any_other() -> None:
    async with calling(shout) as caller:
        reply = await caller.reply(call("shout", {"text": 5}, beckondepth="2"))
    assert (reply.type, reply.source, reply.datacontenttype) == ("shout.reply", "/beckon/tools/shout", JSON)
    assert reply.extensions["replyid"] == "token-1"
    assert reply.extensions["causationid"] == "call-1"
    assert reply.extensions["beckondepth"] == "2"
    assert reply.json() == {
        "error": {"reason": "invalid_arguments", "message": "text: Input should be a valid string"}
    }


async def test_arguments_that_are_no_json_are_refused_by_a_reply() -> None:
    received: list[str] = []
    async with calling(shout_into(received)) as caller:
        event = replace(call("shout", {"text": "hi"}), datacontenttype="text/plain", data=b"hello")
        message = await caller.refusal(event)
    assert message == "the arguments must be application/json, not 'text/plain'"
    assert received == []


async def test_arguments_nested_without_end_are_refused() -> None:
    deep = b'{"text":' + b"[" * 900 + b"1.0" + b"]" * 900 + b"}"
    received: list[str] = []
    async with calling(shout_into(received)) as caller:
        assert "Invalid JSON" in await caller.refusal(replace(call("shout"), data=deep))
    assert received == []


async def test_the_names_of_many_bad_arguments_are_cut_for_the_model() -> None:
    received: list[str] = []
    async with calling(shout_into(received)) as caller:
        message = await caller.refusal(call("shout", {f"ünbekannt{number}": 1 for number in range(200)}))
    assert len(message) == 4000
    assert "ünbekannt0: unknown parameter" in message
    assert message.endswith("…")
    assert received == []


async def test_a_refusal_is_remembered_like_any_outcome() -> None:
    async with calling(shout) as caller:
        first = await caller.refusal(call("shout", {"text": 5}))
        again = await caller.refusal(call("shout", {"text": "the arguments of an event do not change"}))
    assert again == first


@pytest.mark.parametrize(
    ("time", "seen"),
    [
        ("2026-01-31T09:30:00.5Z", "2026-01-31 09:30:00.500000+00:00"),
        ("2026-01-31t09:30:00z", "2026-01-31 09:30:00+00:00"),
        ("2026-06-30T23:59:60Z", "2026-06-30 23:59:59+00:00"),
    ],
)
async def test_a_function_may_see_the_event_of_its_call(time: str, seen: str) -> None:
    async with calling(look) as caller:
        event = replace(call("look", {}, id="42", colour="red"), time=time)
        assert await caller.result(event) == {
            "id": "42",
            "type": "look",
            "time": seen,
            "extension": "red",
        }


async def test_an_event_of_another_type_is_passed_over_without_an_error() -> None:
    async with calling(shout) as caller:
        response = await caller.post(call("shout.reply", {"text": "a"}))
    assert (response.status_code, response.content) == (204, b"")


async def test_an_expired_call_is_not_run() -> None:
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    async with calling(crash) as caller:
        result = await caller.result(call("crash", {}, expirytime=past))
    assert result == {
        "error": {"reason": "timeout", "message": "the call had expired when it came; the tool did not run"}
    }


@pytest.mark.parametrize("offset", ["Z", "z", "+00:00", "+01:00", ".123456789Z"])
async def test_a_call_that_expires_later_is_run(offset: str) -> None:
    later = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%S") + offset
    async with calling(shout) as caller:
        assert await caller.result(call("shout", {"text": "a"}, expirytime=later)) == "A"


@pytest.mark.parametrize("written", ["soon", "2026-11-20T10:00:00", "1"])
async def test_a_call_with_an_expiry_time_that_is_no_time_is_not_run(written: str) -> None:
    received: list[str] = []
    async with calling(shout_into(received)) as caller:
        assert "expirytime" in await caller.refusal(call("shout", {"text": "a"}, expirytime=written))
    assert received == []


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-type": JSON}, b'{"text":"a"}'),
        ({"content-type": "application/cloudevents+json"}, b"{"),
        ({"content-type": "application/cloudevents-batch+json"}, b"[]"),
        ({"ce-specversion": "1.0", "ce-id": "1", "ce-type": "shout"}, b"{}"),
        ({"ce-specversion": "0.3", "ce-id": "1", "ce-type": "shout", "ce-source": "/a"}, b"{}"),
    ],
)
async def test_what_is_no_event_is_a_400(headers: dict[str, str], body: bytes) -> None:
    async with calling(shout) as caller:
        response = await caller.client.post("/", headers=headers, content=body)
    assert response.status_code == 400
    assert response.json()["type"].endswith("/invalid-event")


async def test_a_body_above_the_limit_is_a_413() -> None:
    async with calling(shout, max_event_bytes=50_000) as caller:
        response = await caller.post(call("shout", {"text": "a" * 50_000}))
        assert response.status_code == 413
        assert await caller.result(call("shout", {"text": "a"}, id="2")) == "A"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 405),
        ("PUT", "/", 405),
        ("POST", "/healthz", 405),
        ("POST", "/elsewhere", 404),
        ("GET", "/favicon.ico", 404),
    ],
)
async def test_a_wrong_method_or_path_is_a_problem(method: str, path: str, status: int) -> None:
    async with calling(shout) as caller:
        response = await caller.client.request(method, path)
    assert response.status_code == status == response.json()["status"]
    assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_health_is_reported(path: str) -> None:
    async with calling(shout) as caller:
        assert (await caller.client.get(path)).text == "ok\n"


def test_a_declared_tool_is_still_the_function() -> None:
    assert shout.name == "shout"
    assert shout.description == "Shout a text."
    assert shout.reply_type == "shout.reply"


async def test_a_declared_tool_can_be_called_without_http() -> None:
    assert await shout("a", times=3) == "AAA"


async def documented() -> None:
    """Do something."""


async def undocumented() -> None: ...


def test_a_reply_type_that_is_the_calls_type_is_refused() -> None:
    with pytest.raises(DeclarationError, match="for ever"):
        tool(type="loop", reply_type="loop")(documented)


@pytest.mark.parametrize("name", ["Weather", "", "a b", "-a", "a" * 254, "ü"])
def test_a_name_that_kubernetes_refuses_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError, match="Kubernetes name"):
        tool(type="t", name=name)(documented)


@pytest.mark.parametrize("type_", ["", "a b", "a\n"])
def test_a_type_that_no_header_can_carry_is_refused(type_: str) -> None:
    with pytest.raises(DeclarationError, match="type"):
        tool(type=type_, name="t")(documented)


def test_a_tool_without_description_is_refused() -> None:
    with pytest.raises(DeclarationError, match="docstring"):
        tool(type="t")(undocumented)


def test_the_service_name_is_a_dns_label() -> None:
    declared = tool(type="t", name=f"get.current.{'x' * 100}")(documented)
    assert declared.service.startswith("get-current-x")
    assert len(declared.service) == 63
