"""The first calls of tools that are applied at once, on Knative's default Broker."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.cluster.platform import Platform
from tests.cluster.pod_tool import PodTool, offered

TOOLS = 9
NAME = "punctual"
# Answers every event; its id and its token are all that it needs to know.
SOURCE = """
async def app(scope, receive, send):
    while (await receive()).get("more_body"):
        pass
    call = dict(scope["headers"])
    headers = {
        b"ce-specversion": b"1.0",
        b"ce-id": call[b"ce-id"] + b".reply",
        b"ce-source": b"/punctual",
        b"ce-type": b"punctual.reply",
        b"ce-replyid": call[b"ce-correlationid"],
        b"content-type": b"application/json",
    }
    await send({"type": "http.response.start", "status": 200, "headers": list(headers.items())})
    await send({"type": "http.response.body", "body": b'"here"'})
"""


def manifest(names: list[str]) -> str:
    """Return the EventTypes and Triggers of tools as one document."""
    items = [document for name in names for document in documents(name)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})


def documents(name: str) -> list[dict[str, object]]:
    """Return the EventType and the Trigger of one more tool of the same service."""
    service = {"apiVersion": "v1", "kind": "Service", "name": NAME}
    labels = {"app": NAME}
    notes = {"beckon.dev/parameters": "{}", "beckon.dev/timeout": "10s"}
    return [
        {
            "apiVersion": "eventing.knative.dev/v1",
            "kind": "Trigger",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "broker": "default",
                "filter": {"attributes": {"type": name}},
                "subscriber": {"ref": service},
            },
        },
        {
            "apiVersion": "eventing.knative.dev/v1beta2",
            "kind": "EventType",
            "metadata": {"name": name, "labels": labels, "annotations": notes},
            "spec": {"type": name, "description": f"Use {name}."},
        },
    ]


@pytest.fixture
def serving(platform: Platform) -> Iterator[Platform]:
    """A service for all the tools, whose Triggers and EventTypes are removed at the end."""
    with offered(platform, PodTool(NAME, SOURCE, "{}", plain=True)):
        yield platform
        platform.kube.run("delete", "trigger,eventtype", "--selector", f"app={NAME}")


def test_each_is_answered(serving: Platform) -> None:
    names = [f"{NAME}-{number}" for number in range(TOOLS)]
    serving.kube.apply(manifest(names))

    with ThreadPoolExecutor(TOOLS) as callers:
        answers = list(callers.map(lambda name: first_call(serving, name.replace("-", "_")), names))

    assert [answer for answer in answers if answer != (200, "here")] == []


def first_call(platform: Platform, tool: str) -> tuple[int, object]:
    """Call a tool once it is offered; return the status and the result."""
    platform.wait_until_offered(tool)
    answer = platform.call(tool, {})
    return answer.status_code, answer.json().get("result", answer.text)
