"""Reports of how far a call has come: events to the Broker that no one takes for its answer."""

from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
import pytest_asyncio

from beckon_contract.cloudevents.events import CloudEvent, from_http
from beckon_tools import DeclarationError, Progress, tool
from beckon_tools.signature import read_signature
from tests.serving import served
from tests.tools.serving import call, calling

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CLOSED = "http://127.0.0.1:9"


@tool(type="pages.write", reply_type="pages.written")
async def write_pages(pages: int, progress: Progress) -> int:
    """Write pages."""
    for page in range(pages):
        await progress.report(page + 1, pages, f"page {page + 1}")
    return pages


class Broker:
    """Takes events as a Broker does."""

    def __init__(self) -> None:
        self.events: list[CloudEvent] = []
        self.status = 202

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.events.append(from_http(scope["headers"], (await receive())["body"]))
        await send({"type": "http.response.start", "status": self.status, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest_asyncio.fixture
async def broker(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Broker]:
    running = Broker()
    async with served(running) as url:
        monkeypatch.setenv("K_SINK", url)
        yield running


async def test_each_report_is_an_event_of_its_own_that_names_the_call(broker: Broker) -> None:
    async with calling(write_pages, progress_seconds=0) as caller:
        assert await caller.result(call("pages.write", {"pages": 2}, traceparent=TRACE)) == 2

    assert [event.json() for event in broker.events] == [
        {"progress": 1, "total": 2, "message": "page 1"},
        {"progress": 2, "total": 2, "message": "page 2"},
    ]
    first, second = broker.events
    assert (first.type, first.source) == ("pages.write.progress", "/beckon/tools/pages.write")
    assert first.extensions == {
        "beckonstate": "progress",
        "beckonprogress": "token-1",
        "causationid": "call-1",
        "traceparent": TRACE,
    }
    assert first.id != second.id


async def test_no_report_bears_the_reply_attribute(broker: Broker) -> None:
    async with calling(write_pages) as caller:
        await caller.result(call("pages.write", {"pages": 1}))

    assert broker.events
    assert all({"replyid", "correlationid"}.isdisjoint(event.extensions) for event in broker.events)


async def test_of_many_quick_reports_the_first_three_and_the_last_are_sent(broker: Broker) -> None:
    async with calling(write_pages, progress_seconds=3600) as caller:
        assert await caller.result(call("pages.write", {"pages": 50})) == 50

    assert [event.json() for event in broker.events] == [
        *({"progress": page, "total": 50, "message": f"page {page}"} for page in (1, 2, 3)),
        {"progress": 50, "total": 50, "message": "page 50"},
    ]


async def test_a_broker_that_takes_no_report_does_not_disturb_the_call(broker: Broker) -> None:
    broker.status = 503
    async with calling(write_pages) as caller:
        assert await caller.result(call("pages.write", {"pages": 1})) == 1
    assert len(broker.events) == 1


@pytest.mark.parametrize("sink", ["", CLOSED])
async def test_without_a_broker_reports_go_nowhere(sink: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K_SINK", sink)
    async with calling(write_pages) as caller:
        assert await caller.result(call("pages.write", {"pages": 3})) == 3


def test_progress_is_no_parameter_of_the_tool() -> None:
    assert set(write_pages.signature.schema["properties"]) == {"pages"}


def test_a_plain_function_has_to_be_async() -> None:
    def plain(progress: Progress) -> None: ...

    with pytest.raises(DeclarationError, match="async def"):
        read_signature(plain)
