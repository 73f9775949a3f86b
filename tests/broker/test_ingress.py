from collections.abc import AsyncIterator
from pathlib import Path

from beckon_contract.cloudevents.events import CloudEvent
from tests.broker.broker_process import broker, event, running_broker, trigger
from tests.broker.subscribers import subscriber


async def test_an_event_is_accepted_at_once_and_delivered_unchanged(tmp_path: Path) -> None:
    sent = CloudEvent(
        "id 1",
        "/källa",
        "test.call",
        data=b'{"a": [1, true, null]}',
        datacontenttype="application/json; charset=utf-8",
        subject='100 % "sure"',
        time="2026-01-02T03:04:05.123456789Z",
        extensions={"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    )
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        answer = await running.send(sent)

        [request] = await tool.wait()

    assert (answer.status, answer.body) == (202, b"")
    assert request.event.without("knativearrivaltime") == sent


async def test_a_structured_event_is_delivered_in_binary_mode(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        answer = await running.send(event(data=b'{"a":1}'), structured=True)

        [request] = await tool.wait()

    assert answer.status == 202
    assert request.headers["ce-id"] == "e1"
    assert request.headers["content-type"] == "application/json"
    assert request.body == b'{"a":1}'


async def test_an_event_without_data_or_content_type_gets_neither(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        await running.send(event(data=None))

        [request] = await tool.wait()

    assert request.body == b""
    assert "content-type" not in request.headers


async def test_the_time_of_arrival_is_noted_unless_it_is_there(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        await running.send(event("a", knativearrivaltime="2020-01-01T00:00:00Z"))
        await tool.wait(1)
        await running.send(event("b"))

        first, second = [
            each.extensions["knativearrivaltime"]
            for each in (request.event for request in await tool.wait(2))
        ]

    assert first == "2020-01-01T00:00:00Z"
    assert str(second) > "2026"


async def test_an_event_that_no_trigger_passes_is_accepted_and_counted(tmp_path: Path) -> None:
    async with running_broker(tmp_path, broker()) as running:
        answer = await running.send(event())

        assert answer.status == 202
        assert await running.metric("events_unrouted_total") == 1


async def test_only_the_exact_path_of_a_broker_takes_events(tmp_path: Path) -> None:
    expected = {
        "/": (404, "no-broker-named"),
        "/default": (400, "malformed-path"),
        "/default/default/": (400, "malformed-path"),
        "/default/default/more": (400, "malformed-path"),
        "//default": (400, "malformed-path"),
        "/default/other": (404, "unknown-broker"),
        "/other/default": (404, "unknown-broker"),
        "/default/default?x=1": (404, "unknown-broker"),
    }
    async with running_broker(tmp_path, broker()) as running:
        answers = {path: await running.request("POST", path, b"{}") for path in expected}

    problems = {path: answer.json() for path, answer in answers.items()}
    assert {path: each["status"] for path, each in problems.items()} == {
        path: answer.status for path, answer in answers.items()
    }
    assert {
        path: (each["status"], each["type"].rpartition("/")[2]) for path, each in problems.items()
    } == expected
    assert {each.headers["content-type"] for each in answers.values()} == {"application/problem+json"}


NOT_EVENTS = [
    ({"content-type": "application/json"}, b"{}", "specversion"),
    ({"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s"}, b"", "type"),
    ({"content-type": "application/cloudevents-batch+json"}, b"[]", "batch"),
    ({"content-type": "application/cloudevents+json"}, b"{", "JSON"),
    ({"content-type": "application/cloudevents+avro"}, b"x", "avro"),
    ({"ce-specversion": "19.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t"}, b"", "19.0"),
    ({"ce-id": "1", "ce-source": "/s", "ce-type": "t"}, b"{}", "specversion"),
    ({"ce-specversion": "1.0", "ce-source": "/s", "ce-type": "t"}, b"{}", "'id'"),
    ({"ce-specversion": "1.0", "ce-id": "1", "ce-type": "t"}, b"{}", "'source'"),
]


async def test_what_is_no_single_event_is_answered_400_with_the_cause(tmp_path: Path) -> None:
    async with running_broker(tmp_path, broker()) as running:
        for headers, body, cause in NOT_EVENTS:
            answer = await running.request("POST", "/default/default", body, headers)
            problem = answer.json()

            assert answer.status == 400
            assert problem["type"].endswith("/not-an-event")
            assert cause in problem["detail"]


async def test_an_offer_to_change_the_protocol_is_ignored(tmp_path: Path) -> None:
    offers = {"connection": "upgrade", "upgrade": "h2c", "http2-settings": "AAMAAABkAAQAAP__"}
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        answer = await running.send(event(), headers=offers)

        await tool.wait()

    assert answer.status == 202


async def test_options_answers_the_web_hook_handshake(tmp_path: Path) -> None:
    async with running_broker(tmp_path, broker()) as running:
        answer = await running.request("OPTIONS", "/default/default")

    assert answer.status == 200
    assert answer.headers["allow"] == "POST, OPTIONS"
    assert answer.headers["webhook-allowed-origin"] == "*"
    assert answer.headers["webhook-allowed-rate"] == "*"


async def test_other_methods_are_answered_405(tmp_path: Path) -> None:
    async with running_broker(tmp_path, broker()) as running:
        for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH"):
            answer = await running.request(method, "/default/default")

            assert answer.status == 405
            assert answer.headers["allow"] == "POST, OPTIONS"


async def test_a_large_event_passes_and_a_larger_one_is_answered_413(tmp_path: Path) -> None:
    limit = 100_000
    async with (
        subscriber() as tool,
        running_broker(tmp_path, trigger("t", tool.url), max_event_bytes=limit) as running,
    ):
        passing = await running.send(event("small", data=b"x" * (limit - 1000)))
        refused = await running.send(event("large", data=b"x" * (limit + 1)))
        chunked = await running.request("POST", "/default/default", in_chunks(limit + 1))
        attributes = await running.send(event("sum", data=b"x" * (limit - 100), note="y" * 200))
        [request] = await tool.wait()

    assert [each.status for each in (passing, refused, chunked, attributes)] == [202, 413, 413, 413]
    assert len(request.body) == limit - 1000


async def in_chunks(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, 10_000):
        yield b"x" * min(10_000, size - start)


async def test_a_compressed_event_is_answered_415(tmp_path: Path) -> None:
    async with running_broker(tmp_path, broker()) as running:
        answer = await running.send(event(), headers={"content-encoding": "gzip"})

    assert answer.status == 415


async def test_an_event_whose_ttl_is_used_up_is_answered_400(tmp_path: Path) -> None:
    expected = {"0": 400, "1": 400, "-5": 400, "2": 202, "255": 202, "many": 202}
    async with running_broker(tmp_path, broker()) as running:
        answers = {ttl: await running.send(event(knativebrokerttl=ttl)) for ttl in expected}

    assert {ttl: answer.status for ttl, answer in answers.items()} == expected


async def test_brokers_of_one_name_in_several_namespaces_are_apart(tmp_path: Path) -> None:
    async with (
        subscriber() as one,
        subscriber() as two,
        subscriber() as three,
        running_broker(
            tmp_path,
            trigger("t", one.url, namespace="a"),
            trigger("t", two.url, namespace="b"),
            trigger("t2", three.url, namespace="b", broker="second"),
        ) as running,
    ):
        for number, target in enumerate(("a/default", "b/default", "b/second")):
            assert (await running.send(event(f"e{number}"), to=target)).status == 202
        received = [[request.event.id for request in await each.wait()] for each in (one, two, three)]

    assert received == [["e0"], ["e1"], ["e2"]]


async def test_a_media_type_without_a_subtype_is_relayed_as_knatives_ingress_does(tmp_path: Path) -> None:
    async with subscriber() as tool, running_broker(tmp_path, trigger("t", tool.url)) as running:
        taken = await running.send(event(), headers={"content-type": "xyz"})
        refused = await running.send(event(), headers={"content-type": "xyz/"})

        [request] = await tool.wait()

    assert (taken.status, refused.status) == (202, 400)
    assert b"no media type" in refused.body
    assert request.headers["content-type"] == "xyz"
