"""Events for MCP clients (SEP-3415): listed, polled and streamed over HTTP, with access rules by type."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from beckon_contract.api_keys import new_entry, new_key
from beckon_contract.cloudevents.events import CloudEvent, to_binary, to_structured
from tests.agent.auth.closed_service import (
    STORED_EVENTS,
    ClosedService,
    bearing,
    checking,
    closed_service,
    terms,
)
from tests.agent.event_platform import EventPlatform
from tests.agent.mcp.mcp_server import LEGACY
from tests.agent.mcp.task_client import TaskClient
from tests.broker.broker_process import Manifest, write_manifests
from tests.patience import PATIENCE

pytestmark = pytest.mark.asyncio(loop_scope="module")

EVENTS = "io.modelcontextprotocol/events"
SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
PLACED, PAID, SECRET = "order.placed", "order.paid", "hr.salary"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}

AGENTS = {
    "open": terms(),
    "split": terms(
        access={
            "eventRules": [
                {"users": ["*"], "types": ["order.*"]},
                {"groups": ["hr"], "types": ["hr.salary"]},
            ]
        }
    ),
    "tools-alone": terms(access={"toolRules": [{"users": ["*"], "tools": {"names": ["test.echo"]}}]}),
}


def event_type(kind: str, **spec: object) -> Manifest:
    return {
        "apiVersion": "eventing.knative.dev/v1beta2",
        "kind": "EventType",
        "metadata": {"name": kind.replace("_", "-"), "labels": {"beckon.dev/tool": "false"}},
        "spec": {"type": kind, **spec},
    }


@dataclass(slots=True)
class Feed:
    """The service, its credentials, and a source of events."""

    service: ClosedService
    credentials: dict[str, str]
    sent: int = field(default=0)

    def client(self, agent: str = "open", caller: str = "plain") -> TaskClient:
        http = self.service.http
        client = TaskClient(http, {"extensions": {EVENTS: {}}}, f"/mcp/{agent}")
        return replace(client, headers=bearing(self.credentials[caller]))

    async def send(self, kind: str = PLACED, *, structured: bool = False, **attributes: Any) -> str:
        """Deliver an event as a Broker does; return its id."""
        self.sent += 1
        event = CloudEvent(
            f"e{self.sent}", "/shop", kind, b'{"n": %d}' % self.sent, "application/json", **attributes
        )
        headers, body = (to_structured if structured else to_binary)(event)
        answer = await self.service.http.post(
            "/feed", content=body, headers=dict(headers) | bearing(self.credentials["plain"])
        )
        assert (answer.status_code, answer.content) == (204, b""), answer.text
        return event.id


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def feed(platform: EventPlatform, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Feed]:
    folder = tmp_path_factory.mktemp("event-types")
    shutil.copytree(platform.folder, folder, dirs_exist_ok=True)
    write_manifests(
        folder,
        event_type(
            PLACED,
            description="An order was placed.",
            schemaData='{"type": "object", "properties": {"n": {"type": "integer"}}}',
        ),
        event_type(PAID),
        event_type(SECRET, schemaData="no JSON"),
        file="event-types.json",
    )
    keys = {"plain": new_key(), "hr": new_key()}
    file = tmp_path_factory.mktemp("access") / "keys.jsonl"
    lines = [new_entry(keys["plain"], "plain").line(), new_entry(keys["hr"], "hr", ["hr"]).line()]
    file.write_text("\n".join(lines) + "\n")
    async with (
        aiohttp.ClientSession() as session,
        closed_service(
            replace(platform, folder=folder), AGENTS, checking(None, file, session), max_request_bytes=400_000
        ) as service,
    ):
        yield Feed(service, keys)


async def test_the_extension_is_announced_to_clients_of_its_revision(feed: Feed) -> None:
    found = await feed.client().result("server/discover")

    assert EVENTS in found["capabilities"]["extensions"]


async def test_event_types_without_a_tool_are_listed_with_their_schemas(feed: Feed) -> None:
    listed = (await feed.client().result("events/list"))["events"]

    placed = next(one for one in listed if one["name"] == PLACED)
    assert {PLACED, PAID, SECRET} <= {one["name"] for one in listed}
    assert not any(one["name"].startswith("test.echo") for one in listed)
    assert (placed["description"], placed["delivery"]) == ("An order was placed.", ["poll", "push"])
    assert placed["payloadSchema"]["properties"]["data"] == SCHEMA
    assert placed["inputSchema"]["properties"].keys() == {"filter"}
    secret = next(one for one in listed if one["name"] == SECRET)
    assert secret["payloadSchema"]["properties"]["data"] == {}


async def test_a_client_polls_the_events_since_its_cursor(feed: Feed) -> None:
    client = feed.client()
    await feed.send()

    begun = await client.result("events/poll", name=PLACED, cursor=None)
    first = await feed.send(subject="orders/1", time="2026-01-31T09:30:00Z")
    second = await feed.send(structured=True)
    await feed.send(PAID)
    page = await client.result("events/poll", name=PLACED, cursor=begun["cursor"])
    after = await client.result("events/poll", name=PLACED, cursor=page["cursor"])

    assert (begun["events"], begun["truncated"], begun["hasMore"]) == ([], False, False)
    assert [one["eventId"] for one in page["events"]] == [f"/shop {first}", f"/shop {second}"]
    occurrence = page["events"][0]
    assert occurrence["timestamp"] == "2026-01-31T09:30:00Z"
    assert occurrence["name"] == PLACED
    assert occurrence["data"]["subject"] == "orders/1"
    assert occurrence["data"]["data"] == {"n": int(first[1:])}
    assert page["nextPollMs"] > 0
    assert (after["events"], after["truncated"]) == ([], False)


async def test_a_page_ends_after_the_wanted_number_and_the_rest_follows(feed: Feed) -> None:
    client = feed.client()
    cursor = (await client.result("events/poll", name=PLACED))["cursor"]
    ids = [await feed.send() for _ in range(5)]

    pages = []
    more = True
    while more:
        page = await client.result("events/poll", name=PLACED, cursor=cursor, maxEvents=2)
        cursor, more = page["cursor"], page["hasMore"]
        pages.append([one["data"]["id"] for one in page["events"]])

    assert pages == [ids[:2], ids[2:4], ids[4:]]


async def test_a_filter_selects_events_by_their_attributes(feed: Feed) -> None:
    client = feed.client()
    wanted = {"filter": "subject LIKE 'eu/%' AND EXISTS priority"}
    cursor = (await client.result("events/poll", name=PLACED, arguments=wanted))["cursor"]
    await feed.send(subject="eu/1")
    right = await feed.send(subject="eu/2", extensions={"priority": 1})
    await feed.send(subject="us/3", extensions={"priority": 1})

    page = await client.result("events/poll", name=PLACED, arguments=wanted, cursor=cursor)

    assert [one["data"]["id"] for one in page["events"]] == [right]


async def test_old_events_are_left_out_where_the_client_wants_it(feed: Feed) -> None:
    client = feed.client()
    cursor = (await client.result("events/poll", name=PLACED))["cursor"]
    await feed.send()
    await asyncio.sleep(0.3)
    young = await feed.send()

    page = await client.result("events/poll", name=PLACED, cursor=cursor, maxAgeMs=200)

    assert ([one["data"]["id"] for one in page["events"]], page["truncated"]) == ([young], True)


async def test_a_cursor_whose_events_are_deleted_is_reported(feed: Feed) -> None:
    client = feed.client()
    cursor = (await client.result("events/poll", name=PAID))["cursor"]
    for _ in range(STORED_EVENTS + 60):
        await feed.send()

    page = await client.result("events/poll", name=PAID, cursor=cursor)
    again = await client.result("events/poll", name=PAID, cursor=page["cursor"])

    assert (page["truncated"], again["truncated"]) == (True, False)


async def test_a_stream_replays_from_its_cursor_and_goes_on(feed: Feed) -> None:
    client = feed.client()
    cursor = (await client.result("events/poll", name=PLACED))["cursor"]
    missed = [await feed.send() for _ in range(3)]
    async with (
        client.stream("events/stream", name=PLACED, cursor=cursor) as messages,
        asyncio.timeout(PATIENCE),
    ):
        active = await anext(messages)
        replayed = [await anext(messages) for _ in missed]
        late = [await feed.send() for _ in range(2)]
        await feed.send(PAID)
        live = [await anext(messages) for _ in late]

    assert active["method"] == "notifications/events/active"
    assert (active["params"]["cursor"], active["params"]["truncated"]) == (cursor, False)
    assert {one["params"]["_meta"][SUBSCRIPTION] for one in (active, *replayed, *live)} == {1}
    assert {one["method"] for one in (*replayed, *live)} == {"notifications/events/event"}
    assert [one["params"]["data"]["id"] for one in (*replayed, *live)] == [*missed, *late]
    rest = await client.result("events/poll", name=PLACED, cursor=live[0]["params"]["cursor"])
    assert [one["data"]["id"] for one in rest["events"]] == late[1:]


async def test_a_new_stream_begins_with_the_next_event(feed: Feed) -> None:
    await feed.send()
    client = feed.client()
    async with (
        client.stream("events/stream", name=PLACED, arguments={"filter": "subject = 'x'"}) as messages,
        asyncio.timeout(PATIENCE),
    ):
        assert (await anext(messages))["params"]["truncated"] is False
        await feed.send(subject="y")
        wanted = await feed.send(subject="x")
        found = await anext(messages)

    assert found["params"]["data"]["id"] == wanted


@pytest.mark.parametrize(
    ("params", "code", "said"),
    [
        ({"name": "no.such"}, -32023, "events/list"),
        ({"name": "test.echo"}, -32023, "events/list"),
        ({"name": PLACED, "cursor": "abc"}, -32602, "send null"),
        ({"name": PLACED, "cursor": "9" * 30}, -32602, "send null"),
        ({"name": PLACED, "arguments": {"filter": "subject LIKE"}}, -32602, "CloudEvents SQL"),
        ({"name": PLACED, "arguments": {"filter": "a" * 2000}}, -32602, "at most 1000"),
        ({"name": PLACED, "arguments": {"filter": 7}}, -32602, "must be a string"),
        ({"name": PLACED, "arguments": {"source": "/x"}}, -32602, "'source' is unknown"),
        ({"name": PLACED, "maxAgeMs": -1}, -32602, ""),
        ({}, -32602, ""),
    ],
)
@pytest.mark.parametrize("method", ["events/poll", "events/stream"])
async def test_bad_requests_are_errors_with_their_cure(
    feed: Feed, method: str, params: dict[str, Any], code: int, said: str
) -> None:
    error = await feed.client().error(method, **params)

    assert (error["code"], said in error["message"]) == (code, True), error


async def test_a_bad_cursor_of_the_list_is_an_error(feed: Feed) -> None:
    error = await feed.client().error("events/list", cursor="x")

    assert (error["code"], "first page" in error["message"]) == (-32602, True)


async def test_earlier_revisions_do_not_have_the_methods(feed: Feed) -> None:
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": LEGACY}
    headers |= bearing(feed.credentials["plain"])
    message = {"jsonrpc": "2.0", "id": 1, "method": "events/list", "params": {}}

    answer = await feed.service.http.post("/mcp/open", json=message, headers=headers)

    assert answer.json()["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("agent", "caller", "readable"),
    [
        ("open", "plain", {PLACED, PAID, SECRET}),
        ("split", "plain", {PLACED, PAID}),
        ("split", "hr", {PLACED, PAID, SECRET}),
        ("tools-alone", "plain", set()),
    ],
)
async def test_a_caller_reads_the_types_that_rules_name_the_caller_for(
    feed: Feed, agent: str, caller: str, readable: set[str]
) -> None:
    client = feed.client(agent, caller)

    listed = {one["name"] for one in (await client.result("events/list"))["events"]}
    polled = {
        kind for kind in (PLACED, PAID, SECRET) if "result" in await client.send("events/poll", name=kind)
    }
    streamed = {
        kind
        for kind in (PLACED, PAID, SECRET)
        if kind not in readable and (await client.error("events/stream", name=kind))["code"] == -32023
    }

    assert listed & {PLACED, PAID, SECRET} == polled == readable
    assert streamed == {PLACED, PAID, SECRET} - readable


async def test_an_event_without_a_credential_is_not_stored(feed: Feed) -> None:
    headers, body = to_binary(CloudEvent("x", "/shop", PLACED))

    answer = await feed.service.http.post("/feed", content=body, headers=dict(headers))

    assert answer.status_code == 401


ATTRIBUTES = {"ce-id": "1", "ce-source": "/s", "ce-type": "t", "ce-specversion": "1.0"}
REFUSED: dict[str, tuple[str, dict[str, str], bytes, int, str]] = {
    "no-event": ("/feed", {}, b"{}", 400, "invalid-event"),
    "batch": (
        "/feed",
        {"content-type": "application/cloudevents-batch+json"},
        b"[]",
        415,
        "unsupported-event",
    ),
    "namespace": ("/feed/Not_A_Name", {}, b"", 404, "unknown-namespace"),
    "large": ("/feed", ATTRIBUTES, b"x" * 300_000, 413, "event-too-large"),
    "deep": (
        "/feed",
        {**ATTRIBUTES, "content-type": "application/json"},
        b"[" * 500 + b"]" * 500,
        400,
        "invalid-event",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_cannot_be_stored_is_refused(feed: Feed, case: str) -> None:
    path, headers, body, status, slug = REFUSED[case]
    sent = headers | bearing(feed.credentials["plain"])

    answer = await feed.service.http.post(path, content=body, headers=sent)

    assert (answer.status_code, answer.json()["type"].rpartition("/")[2]) == (status, slug), answer.text


async def test_events_of_another_namespace_are_not_read(feed: Feed) -> None:
    client = feed.client()
    cursor = (await client.result("events/poll", name=PLACED))["cursor"]
    headers, body = to_binary(CloudEvent("elsewhere", "/shop", PLACED))
    sent = dict(headers) | bearing(feed.credentials["plain"])
    assert (await feed.service.http.post("/feed/other", content=body, headers=sent)).status_code == 204

    page = await client.result("events/poll", name=PLACED, cursor=cursor)

    assert page["events"] == []
