"""The adapter as a service: call events in, requests out, reply events back."""

import base64
import json
from collections.abc import Iterator

import pytest
import stamina

from beckon_contract.cloudevents.events import CloudEvent
from tests.adapter.plain_api import (
    ApiAnswer,
    PlainApi,
    adapting,
    api_answer,
    before,
    egress_to,
    event_type,
    local,
    serving,
)
from tests.tools.serving import call

TYPE = "api.asked"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """Attempts follow each other at once; how many there are is the rule's."""
    with stamina.set_testing(True, attempts=10, cap=True):
        yield


def call_event(arguments: object = None, id: str = "call-1", **more: str) -> CloudEvent:  # noqa: A002 - the attribute's name
    return call(TYPE, arguments, id=id, **more)


def failure(document: object) -> dict[str, str]:
    assert isinstance(document, dict), document
    found: dict[str, str] = document["error"]
    return found


async def test_a_call_becomes_a_request_and_the_answer_a_correlated_reply() -> None:
    api = PlainApi([api_answer({"temperature": 21.5, "unit": "C"})])
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/cities/{{city}}/weather"}
        async with adapting(egress_to(local(port)), event_type(rule, CITY)) as adapter:
            reply = await adapter.reply(
                call_event({"city": "San José"}, traceparent=f"00-{'1' * 32}-{'2' * 16}-01")
            )

    assert reply.json() == {"temperature": 21.5, "unit": "C"}
    assert (reply.type, reply.source) == ("api.asked.reply", "/beckon/adapter/default/asked")
    assert reply.extensions["replyid"] == "token-1"
    assert str(reply.extensions["traceparent"]).split("-")[1] == "1" * 32
    assert [(one.method, one.path) for one in api.requests] == [("GET", "/cities/San%20Jos%C3%A9/weather")]
    assert "idempotency-key" not in api.requests[0].headers
    assert api.requests[0].headers["traceparent"].split("-")[1] == "1" * 32


async def test_a_rule_with_its_own_trace_header_replaces_ours() -> None:
    api = PlainApi([api_answer({})])
    async with before(api, headers={"traceparent": "of the rule"}) as adapter:
        await adapter.reply(call_event({}, traceparent=f"00-{'1' * 32}-{'2' * 16}-01"))

    assert api.requests[0].headers["traceparent"] == "of the rule"


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ("items[].{id: id, name: name}", [{"id": 1, "name": "a"}, {"id": 2, "name": None}]),
        ("length(items)", 2),
        ("absent.field", None),
        (None, {"items": [{"id": 1, "name": "a", "more": True}, {"id": 2}]}),
    ],
)
async def test_the_rule_selects_what_the_model_sees(result: str | None, found: object) -> None:
    api = PlainApi(
        [
            api_answer(
                {"items": [{"id": 1, "name": "a", "more": True}, {"id": 2}]}, kind="application/hal+json"
            )
        ]
    )
    async with before(api, result=result) as adapter:
        assert await adapter.result(call_event({})) == found


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (api_answer(b"Hello\n", kind="text/plain"), "Hello\n"),
        (api_answer("Grüße".encode("latin-1"), kind="text/plain; charset=ISO-8859-1"), "Grüße"),
        (api_answer(b"x", kind="text/plain; charset=no-such"), "x"),
        (api_answer(b"x\xff", kind="text/plain; charset=idna"), "x\ufffd"),
        (api_answer(b"x", kind="text/plain; charset=undefined"), "x"),
        (api_answer(b"<a/>", kind="application/atom+xml"), "<a/>"),
        (api_answer(b"<svg/>", kind="image/svg+xml"), "<svg/>"),
        (
            api_answer(b"\x89PNG", kind="image/png"),
            {"media_type": "image/png", "data_base64": base64.b64encode(b"\x89PNG").decode()},
        ),
        (ApiAnswer(200, b'{"a": 1}'), {"a": 1}),
        (ApiAnswer(200, b"just text"), "just text"),
        (ApiAnswer(200, b"\xff\xfe"), {"media_type": "application/octet-stream", "data_base64": "//4="}),
        (ApiAnswer(204), {"status": 204}),
        (ApiAnswer(201, b"", (("content-type", "application/json"),)), {"status": 201}),
        (api_answer(b"null"), None),
    ],
)
async def test_answers_of_every_kind_become_results(answer: ApiAnswer, found: object) -> None:
    async with before(PlainApi([answer])) as adapter:
        assert await adapter.result(call_event({})) == found


@pytest.mark.parametrize(
    ("answer", "result", "said"),
    [
        (api_answer(b"{", kind="application/json"), None, "what it calls JSON and is none"),
        (
            api_answer(b"text", kind="text/plain"),
            "a",
            "answered with text/plain; the rule's result needs JSON",
        ),
        (api_answer({"a": "text"}), "sum(a)", "the rule's result does not fit"),
        (api_answer(b"x" * 20_000, kind="text/plain"), None, "more than 10000 bytes"),
        (ApiAnswer(304), None, "status 304"),
    ],
)
async def test_an_answer_that_is_no_result_is_reported(
    answer: ApiAnswer, result: str | None, said: str
) -> None:
    async with before(PlainApi([answer]), result=result) as adapter:
        error = failure(await adapter.result(call_event({})))

    assert error["reason"] == "tool_failed"
    assert said in error["message"]


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({"detail": "no such unit", "status": 400}, "application/problem+json", "no such unit"),
        ({"error": {"code": 7, "message": "bad  \n unit"}}, "application/json", "bad unit"),
        ({"errors": [{"field": "unit"}]}, "application/json", '[{"field":"unit"}]'),
        (b"plain words", "text/plain", "plain words"),
        (b"<html>long page</html>", "text/html", ""),
        ({"message": "x" * 5000}, "application/json", "x" * 300 + "…"),
        (b'{"error":' * 700 + b'"x"' + b"}" * 700, "application/json", '{"error":' * 33 + '{"e…'),
        (b"{", "application/json", ""),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
async def test_what_the_model_can_mend_is_refused_in_the_words_of_the_api(
    status: int, body: object, kind: str, words: str
) -> None:
    api = PlainApi([api_answer(body, status, kind=kind)])
    async with before(api) as adapter:
        message = await adapter.refusal(call_event({}))
        again = await adapter.refusal(call_event({}))

    assert message == again == f"api.test answered {status}" + (f": {words}" if words else "")
    assert len(api.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404, 409, 410, 418])
async def test_other_refusals_are_reported_in_the_reply_and_not_repeated(status: int) -> None:
    api = PlainApi([api_answer({"message": "no"}, status)])
    async with before(api) as adapter:
        error = failure(await adapter.result(call_event({})))

    assert error["message"].startswith(f"api.test answered {status}: no")
    assert ("the owner of the HTTP adapter" in error["message"]) == (status in (401, 403))
    assert len(api.requests) == 1


@pytest.mark.parametrize(
    ("method", "attempts"), [("GET", 3), ("PUT", 3), ("DELETE", 3), ("POST", 1), ("PATCH", 1)]
)
async def test_a_failing_api_is_called_again_by_the_rule_and_then_by_the_broker(
    method: str, attempts: int
) -> None:
    api = PlainApi([api_answer({"message": "down"}, 503, ("retry-after", "7"))])
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/", "method": method, "retries": 2}
        async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
            response = await adapter.post(call_event({}))
            assert len(api.requests) == attempts
            api.answers = [api_answer({"ok": True})]
            assert await adapter.result(call_event({})) == {"ok": True}

    assert (response.status_code, response.headers["retry-after"]) == (503, "7")
    assert response.json()["detail"] == "api.test answered 503: down"


async def test_a_failure_that_passes_is_not_seen() -> None:
    api = PlainApi(
        [
            api_answer({}, 500),
            ApiAnswer(200, b"x", (("content-length", "9"),), breaks_off=True),
            api_answer({"ok": True}),
        ]
    )
    async with before(api) as adapter:
        assert await adapter.result(call_event({})) == {"ok": True}

    assert len(api.requests) == 3


async def test_too_many_requests_are_for_the_broker_to_repeat() -> None:
    async with before(PlainApi([api_answer({}, 429, ("retry-after", "soon"))])) as adapter:
        response = await adapter.post(call_event({}))

    assert response.status_code == 503
    assert "retry-after" not in response.headers


async def test_a_post_that_may_have_had_its_effect_is_not_repeated_unless_it_may_be() -> None:
    api = PlainApi([ApiAnswer(200, b"late", seconds=2)])
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/", "method": "POST", "timeout": "600ms"}
        async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
            error = failure(await adapter.result(call_event({})))
        async with adapting(egress_to(local(port)), event_type(rule, idempotent="true")) as adapter:
            response = await adapter.post(call_event({}))

    assert error["reason"] == "outcome_unknown"
    assert "may have had its effect, and was not repeated" in error["message"]
    assert response.status_code == 503


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (api_answer({"message": "down"}, 500), "tool_failed"),
        (api_answer({"message": "down"}, 502), "outcome_unknown"),
        (api_answer({"message": "down"}, 503), "outcome_unknown"),
        (api_answer({"message": "down"}, 504), "outcome_unknown"),
        (ApiAnswer(200, b"x", (("content-length", "9"),), breaks_off=True), "outcome_unknown"),
    ],
    ids=["500", "502", "503", "504", "breaks off"],
)
async def test_what_may_have_had_its_effect_is_sent_once_however_often_the_call_comes(
    method: str, answer: ApiAnswer, reason: str
) -> None:
    api = PlainApi([answer])
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/", "method": method, "retries": 5}
        async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
            errors = [failure(await adapter.result(call_event({}))) for _ in range(6)]
        async with adapting(egress_to(local(port)), event_type(rule, idempotent="true")) as adapter:
            repeatable = await adapter.post(call_event({}))

    assert [error["reason"] for error in errors] == [reason] * 6
    assert len(api.requests) == 2
    assert repeatable.status_code == 503


@pytest.mark.parametrize("status", [429, 503])
async def test_a_post_that_the_api_wants_later_is_for_the_broker_to_repeat(status: int) -> None:
    api = PlainApi([api_answer({}, status, ("retry-after", "7"))])
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/", "method": "POST"}
        async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
            response = await adapter.post(call_event({}))

    assert (response.status_code, response.headers["retry-after"]) == (503, "7")


@pytest.mark.parametrize("status", [429, 503])
async def test_a_post_that_was_answered_with_a_redirect_is_never_repeated(status: int) -> None:
    api = PlainApi(
        [ApiAnswer(303, b"", (("location", "/done"),)), api_answer({}, status, ("retry-after", "7"))]
    )
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/", "method": "POST"}
        async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
            for _ in range(2):
                failure(await adapter.result(call_event({})))

    assert [one.method for one in api.requests] == ["POST", "GET"]


async def test_a_post_that_never_arrived_is_repeated() -> None:
    async with serving(PlainApi()) as port:
        pass
    rule = {"url": f"http://api.test:{port}/", "method": "POST"}
    async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
        response = await adapter.post(call_event({}))

    assert response.status_code == 503
    assert "cannot be reached" in response.json()["detail"]


async def test_every_delivery_of_a_call_has_one_idempotency_key() -> None:
    api = PlainApi([api_answer({}, 429), api_answer({})])
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/", "method": "POST"}
        async with adapting(egress_to(local(port)), event_type(rule)) as adapter:
            await adapter.post(call_event({}))
            await adapter.post(call_event({}))
            await adapter.post(call_event({}))
            await adapter.post(call_event({}, id="call-2"))

    first, second, other = (one.headers["idempotency-key"] for one in api.requests)
    assert first == second != other


async def test_arguments_are_checked_by_the_schema_before_anything_is_sent() -> None:
    api = PlainApi()
    async with serving(api) as port:
        rule = {"url": f"http://api.test:{port}/{{city}}"}
        async with adapting(egress_to(local(port)), event_type(rule, CITY)) as adapter:
            for number, (arguments, said) in enumerate(
                (
                    ({}, "city"),
                    ({"city": 5}, "city"),
                    ({"city": ".."}, "'city'"),
                    ([], "object"),
                )
            ):
                assert said in await adapter.refusal(call_event(arguments, id=f"call-{number}"))

    assert api.requests == []


async def test_a_mistake_in_a_rule_is_logged_and_shown_to_who_calls(caplog: pytest.LogCaptureFixture) -> None:
    broken = event_type({"url": "http://api.test/{town}"}, CITY)
    async with adapting(egress_to(), broken) as adapter:
        error = failure(await adapter.result(call_event({"city": "x"})))

    assert "the EventType asked has a mistake" in error["message"]
    assert "names the argument 'town', which does not exist; the parameters are city" in error["message"]
    declaring = [one for one in caplog.records if one.name == "beckon_adapter.declaration"]
    assert [one.levelname for one in declaring if "'town'" in one.message] == ["ERROR"]


async def test_a_host_that_is_not_allowed_is_reported_with_the_setting() -> None:
    async with adapting(egress_to(), event_type({"url": "https://api.test/"})) as adapter:
        error = failure(await adapter.result(call_event({})))

    assert "may not call api.test" in error["message"]
    assert "BECKON_ADAPTER_ALLOWED_HOSTS" in error["message"]


async def test_events_of_no_eventtype_are_taken_and_left_alone() -> None:
    async with adapting(egress_to(), event_type({"url": "https://api.test/"})) as adapter:
        assert (await adapter.post(call("other.type", {}))).status_code == 204


async def test_namespaces_are_distinguished_by_the_broker() -> None:
    api = PlainApi([api_answer({})])
    async with serving(api) as port:
        types = [
            event_type({"url": f"http://api.test:{port}/{space}"}, namespace=space)
            for space in ("one", "two")
        ]
        async with adapting(egress_to(local(port)), *types) as adapter:
            adapter.client.headers["kn-namespace"] = "two"
            await adapter.result(call_event({}))
            adapter.client.headers["kn-namespace"] = "three"
            assert (await adapter.post(call_event({}, id="call-2"))).status_code == 204
            del adapter.client.headers["kn-namespace"]
            error = failure(await adapter.result(call_event({}, id="call-3")))

    assert [one.path for one in api.requests] == ["/two"]
    assert "EventType one/asked, EventType two/asked" in error["message"]


async def test_a_duplicate_is_answered_without_asking_again() -> None:
    api = PlainApi([api_answer({"n": 1}), api_answer({"n": 2})])
    async with before(api) as adapter:
        assert await adapter.result(call_event({})) == await adapter.result(call_event({})) == {"n": 1}


async def test_a_file_among_the_arguments_is_sent_and_one_in_the_answer_comes_back() -> None:
    api = PlainApi([api_answer(b"RIFF", kind="audio/wav")])
    media = {"media_type": "audio/wav", "data_base64": base64.b64encode(b"RIFF").decode()}
    async with serving(api) as port:
        rule = json.dumps(
            {"url": f"http://api.test:{port}/", "body": "{sound}", "body_type": "audio/*"}
        ).replace("audio/*", "application/octet-stream")
        schema = {"type": "object", "properties": {"sound": {"type": "object"}}}
        async with adapting(egress_to(local(port)), event_type(rule, schema)) as adapter:
            assert await adapter.result(call_event({"sound": media})) == media

    assert (api.requests[0].headers["content-type"], api.requests[0].body) == ("audio/wav", b"RIFF")
