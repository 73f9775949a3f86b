"""A client reads the events of the local platform: an EventType, a Trigger, and MCP."""

import json
from pathlib import Path
from typing import Any

import httpx

from beckon_contract.cloudevents.events import CloudEvent, to_binary
from tests.agent.mcp.mcp_server import enveloped, routing
from tests.e2e.conftest import Start
from tests.e2e.local_platform import LocalPlatform
from tests.patience import PATIENCE, wait_until

PLACED = "order.placed"


def manifests(url: str) -> list[dict[str, object]]:
    return [
        {
            "apiVersion": "eventing.knative.dev/v1beta2",
            "kind": "EventType",
            "metadata": {"name": PLACED, "labels": {"beckon.dev/tool": "false"}},
            "spec": {"type": PLACED, "description": "An order was placed."},
        },
        {
            "apiVersion": "eventing.knative.dev/v1",
            "kind": "Trigger",
            "metadata": {"name": "orders-to-feed"},
            "spec": {
                "broker": "default",
                "filter": {"attributes": {"type": PLACED}},
                "subscriber": {"uri": f"{url}/feed"},
            },
        },
    ]


def request(platform: LocalPlatform, method: str, **params: object) -> dict[str, Any]:
    answer = httpx.post(
        f"{platform.url}/mcp",
        json=enveloped(method, params),
        headers=routing(method, params),
        timeout=PATIENCE,
    )
    result: dict[str, Any] = answer.json()["result"]
    return result


def test_an_event_of_the_broker_reaches_a_client_by_its_cursor(start_platform: Start, tmp_path: Path) -> None:
    platform = start_platform(tmp_path, BECKON_MCP_EVENTS="100")
    (tmp_path / "feed.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests(platform.url)})
    )

    def is_listed() -> bool:
        return any(one["name"] == PLACED for one in request(platform, "events/list")["events"])

    wait_until(is_listed)
    cursor = request(platform, "events/poll", name=PLACED)["cursor"]
    headers, body = to_binary(CloudEvent("1", "/shop", PLACED, b'{"number": 7}', "application/json"))
    broker = f"http://127.0.0.1:{platform.port + 1}/default/default"

    def is_read() -> bool:
        # The Trigger may be newer than the broker's last look: an event before it is delivered nowhere.
        assert httpx.post(broker, content=body, headers=dict(headers), timeout=PATIENCE).status_code == 202
        return bool(request(platform, "events/poll", name=PLACED, cursor=cursor)["events"])

    wait_until(is_read)
    page = request(platform, "events/poll", name=PLACED, cursor=cursor)

    (event,) = page["events"]
    assert (event["eventId"], event["data"]["data"]) == ("/shop 1", {"number": 7})
