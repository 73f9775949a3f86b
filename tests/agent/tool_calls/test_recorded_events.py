"""What is stored of the events of a call."""

import base64
import json

import pytest

from beckon_agent.tool_calls.recorded_events import (
    MAX_STORED,
    TOKEN,
    event_document,
    record_call,
    record_problem,
    record_reply,
    recording_events,
    without_tokens,
)
from beckon_contract.cloudevents.events import CloudEvent
from beckon_contract.correlation import Keyring, SigningKey, mint


def event(data: bytes | None, kind: str | None = "application/json") -> CloudEvent:
    return CloudEvent(
        id="1", source="/s", type="t", data=data, datacontenttype=kind, extensions={"replyid": "x"}
    )


@pytest.mark.parametrize("data", [b'{"a": [1, null]}', b'"\\u00e9"', b"%d" % 2**80, b"null"])
def test_json_is_stored_as_json(data: bytes) -> None:
    assert event_document(event(data)) == {
        "event": {
            "specversion": "1.0",
            "id": "1",
            "source": "/s",
            "type": "t",
            "datacontenttype": "application/json",
            "replyid": "x",
            "data": json.loads(data),
        }
    }


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"\x00\xff\x89PNG", "image/png"), (b"text", "text/plain"), (b"{no json", "application/json")],
)
def test_all_else_is_stored_byte_for_byte(data: bytes, kind: str) -> None:
    recorded = event_document(event(data, kind))["event"]

    assert base64.b64decode(recorded["data_base64"]) == data
    assert "data" not in recorded


@pytest.mark.parametrize("name", ["replyid", "correlationid", "backid"])
@pytest.mark.parametrize("size", [10, MAX_STORED])
def test_no_token_is_stored_whatever_its_attribute_is_called(name: str, size: int) -> None:
    token = mint(Keyring([SigningKey.random()]), "shim-0", b"1")
    data = json.dumps({"replyid": token, "text": "x" * size}).encode()
    reply = CloudEvent("1", "/s", "t", data, "application/json", extensions={name: token, "chain": "a.b.c"})

    recorded = event_document(reply)["event"]

    assert recorded[name] == TOKEN
    assert recorded["chain"] == "a.b.c"
    assert recorded.get("data") in (None, json.loads(data))  # the data is the tool's, and stays as it came


def test_a_result_that_looks_like_a_token_is_stored_as_it_is() -> None:
    token = mint(Keyring([SigningKey.random()]), "shim-0")

    assert without_tokens({"id": token, "data": token, "replyid": token}) == {
        "id": token,
        "data": token,
        "replyid": TOKEN,
    }


def test_an_event_without_data_has_none() -> None:
    assert not event_document(event(None))["event"].keys() & {"data", "data_base64"}


def test_of_an_event_with_too_much_data_only_the_attributes_are_stored() -> None:
    recorded = event_document(event(b'"' + b"x" * MAX_STORED + b'"'))

    assert recorded["omitted"] == MAX_STORED + 2
    assert recorded["event"]["replyid"] == "x"
    assert "data" not in recorded["event"]


def test_json_that_is_nested_deeper_than_it_can_be_written_is_left_out() -> None:
    recorded = event_document(event(b"[" * 900 + b"]" * 900))

    assert recorded["omitted"] == 1_800
    assert "data" not in recorded["event"]


def test_what_passes_is_noted_for_its_call_alone() -> None:
    with recording_events() as first:
        record_call(event(b"1"))
        with recording_events() as second:
            record_problem({"detail": "no"})
        record_problem({})
        record_reply(event(b"2"))
    record_reply(event(b"3"))

    assert first.call == event_document(event(b"1"))
    assert first.reply == event_document(event(b"2"))
    assert (second.call, second.reply) == (None, {"problem": {"detail": "no"}})
