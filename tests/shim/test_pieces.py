"""The pure parts of the shim, rule by rule."""

import asyncio
import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beckon_contract.cloudevents.events import CloudEvent, EventError, from_http, to_binary
from beckon_contract.correlation import Keyring, check_replica, pod_replica, verify
from beckon_runtime.http_messages import Answer
from beckon_runtime.posts import Target
from beckon_shim.brokers import Templates
from beckon_shim.calls import Deadlines
from beckon_shim.messages import WireEvent, read
from beckon_shim.peers import Addresses, PodAddresses
from beckon_shim.tokens import Tokens, follow_keys
from beckon_shim.waiters import Waiter, Waiters, WaiterState, decode_error, undeliverable
from tests.patience import until


def test_the_earlier_of_wait_and_expiry_counts_within_the_limit() -> None:
    deadlines = Deadlines(30, 60)
    assert deadlines.seconds(None, None, 1000) == 30
    assert deadlines.seconds(10, None, 1000) == 10
    assert deadlines.seconds(None, 1050, 1000) == 50
    assert deadlines.seconds(10, 1005, 1000) == 5
    assert deadlines.seconds(10, 1050, 1000) == 10
    assert deadlines.seconds(100, 9999, 1000) == 60
    assert deadlines.seconds(None, 900, 1000) == 0


@given(st.binary(max_size=900), st.integers(0, 1400))
def test_error_data_is_decoded_wherever_it_was_cut(body: bytes, cut: int) -> None:
    text = base64.b64encode(body).decode()[:cut]
    whole = body[: len(text.rstrip("=")) * 3 // 4].decode(errors="replace")
    assert decode_error(text) == re.sub(r"[\x00-\x08\x0b-\x1f\x7f]+", " ", whole)[:1024]


@given(st.text())
def test_error_data_of_any_kind_gives_printable_text(data: str) -> None:
    text = decode_error(data)
    assert len(text) <= 1024
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", text)


def test_error_data_that_was_not_encoded_is_taken_as_it_is() -> None:
    assert decode_error("Internal Server Error: it broke") == "Internal Server Error: it broke"


_REFUSED = "dispatch error: dial tcp 10.0.0.1:80: connect: connection refused"


@pytest.mark.parametrize(
    ("code", "data", "answered"),
    [
        ("400", "", 400),
        ("404", "", 404),
        ("409", "", 409),
        ("500", _REFUSED, None),
        ("500", "dispatch error: cannot connect to tool:80: Connect call failed", None),
        ("500", "charged; cannot connect to the mail server", 500),
        ("-1", "", None),
        ("", "", None),
        ("abc", "", None),
    ],
)
def test_a_dead_letter_about_the_last_attempt_says_that_the_tool_may_have_run(
    code: str, data: str, answered: int | None
) -> None:
    problem = _problem(code, data)
    assert problem["delivered"] is True
    assert problem.get("code") == answered


@pytest.mark.parametrize(("said", "delivered"), [("true", False), ("false", True), ("1", True), ("", True)])
def test_a_dead_letter_about_every_attempt_says_whether_the_tool_may_have_run(
    said: str, delivered: bool
) -> None:
    assert _problem("500", _REFUSED, said)["delivered"] is delivered
    assert _problem("404", "", said)["delivered"] is delivered


def _problem(code: str, data: str, not_begun: str = "") -> dict[str, Any]:
    """Return the answer to a call with such a dead letter."""
    attributes = {
        b"ce-knativeerrorcode": code.encode(),
        b"ce-knativeerrordata": base64.b64encode(data.encode()),
        b"ce-knativeerrordest": b"http://tool",
        b"ce-beckonnotbegun": not_begun.encode(),
    }
    answer = undeliverable(WireEvent(attributes, b"", b""), "http://broker/default/main")
    assert answer.status == 502
    problem: dict[str, Any] = json.loads(answer.body)
    return problem


_NAME = st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True).map(lambda name: f"ce-{name}".encode())
_VALUE = st.one_of(
    st.binary(max_size=12), st.sampled_from([b"1.0", b"", b"%41", b'"a"', b"2026-01-31T09:30:00Z"])
)


@given(
    st.dictionaries(
        st.one_of(_NAME, st.sampled_from([b"ce-time", b"ce-subject", b"ce-data", b"x-other"])), _VALUE
    ),
    st.sampled_from([b"", b"application/json", b"text/plain", b"application/cloudevents+json"]),
)
def test_the_byte_path_takes_an_event_exactly_as_the_codec_does(
    extra: dict[bytes, bytes], kind: bytes
) -> None:
    usual = {
        b"ce-specversion": b"1.0",
        b"ce-id": b"1",
        b"ce-source": b"/s",
        b"ce-type": b"t",
        b"content-type": kind,
    }
    headers = list({**usual, **extra}.items())
    try:
        expected = from_http(headers, b"{}")
    except EventError:
        with pytest.raises(EventError):
            read(headers, b"{}")
        return
    event = read(headers, b"{}")
    assert from_http(event.headers(), event.body) == expected


@given(st.text(min_size=1, alphabet=st.characters(exclude_categories=("Cc", "Cs", "Cn"))))
def test_any_text_passes_through_the_byte_path(text: str) -> None:
    event = CloudEvent("1", "/s", "t", b"x", subject=text)
    headers, body = to_binary(event)
    raw = [(name.encode(), value.encode()) for name, value in headers]
    assert from_http(read(raw, body).headers(), body) == event


def test_a_repeated_header_is_refused() -> None:
    headers = [
        (b"ce-specversion", b"1.0"),
        (b"ce-id", b"1"),
        (b"ce-id", b"2"),
        (b"ce-source", b"s"),
        (b"ce-type", b"t"),
    ]
    with pytest.raises(EventError, match="more than once"):
        read(headers, b"")


def test_paths_become_urls_and_nothing_else_does() -> None:
    templates = Templates("http://{name}-ingress.{namespace}.svc")
    assert templates.find("/team/orders") == Target("http://orders-ingress.team.svc")
    for path in (
        "/",
        "/a",
        "/a/",
        "//b",
        "/a/b/c",
        "/A/b",
        "/a/..",
        "/a/b\n",
        "/a/b%2f",
        "/a{/b",
        "/" + "a" * 64 + "/b",
    ):
        refusal = templates.find(path)
        assert isinstance(refusal, Answer)
        assert refusal.status == 404


@pytest.mark.parametrize(
    ("ip", "replica", "url"),
    [
        ("10.244.0.17", "10-244-0-17", "http://10.244.0.17:8083"),
        ("fd00::1:a", "fd00-0000-0000-0000-0000-0000-0001-000a", "http://[fd00::1:a]:8083"),
    ],
)
def test_a_replica_called_after_its_pod_is_found_without_a_list(ip: str, replica: str, url: str) -> None:
    assert pod_replica(ip) == replica
    assert check_replica(replica) == replica
    assert PodAddresses(8083).url(replica) == url


@pytest.mark.parametrize("replica", ["shim-0", "a-b-c-d", "10-244-0", "10-244-0-256", "1-2-3-4-5"])
def test_a_replica_that_is_no_ip_has_no_address_among_pods(replica: str) -> None:
    assert PodAddresses(8083).url(replica) is None


def test_peers_are_a_template_or_a_list() -> None:
    assert Addresses("http://{replica}.shim:8083/").url("shim-2") == "http://shim-2.shim:8083"
    listed = Addresses("shim-0=http://a:1, shim-1=http://b:2/")
    assert (listed.url("shim-1"), listed.url("shim-9")) == ("http://b:2", None)
    assert Addresses("").url("shim-0") is None


def test_keys_come_by_comma_or_line_and_not_too_many() -> None:
    assert len(Keyring.parse("00" * 16 + ",\n" + "11" * 16 + "\n").keys) == 2
    with pytest.raises(ValueError, match="at most 8"):
        Keyring.parse(",".join(["00" * 16] * 9))
    with pytest.raises(ValueError, match="at least one"):
        Keyring.parse(" \n")


async def test_a_key_file_is_followed_and_an_unusable_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = "00" * 16, "11" * 16
    file = tmp_path / "keys"
    file.write_text("nonsense")
    tokens = Tokens(Keyring.parse(first), "shim-0")
    following = asyncio.create_task(follow_keys(file, tokens, seconds=0.005))
    await until(lambda: "the old ones stay" in caplog.text)
    assert verify(Keyring.parse(first), tokens.mint(b"call-1")[0]) is not None
    file.write_text(second)
    await until(lambda: verify(Keyring.parse(second), tokens.mint(b"call-1")[0]) is not None)
    assert "11111111" not in caplog.text
    following.cancel()


async def test_memory_of_ended_calls_is_bounded() -> None:
    waiters = Waiters()
    answer = Answer(200, [], b"", "replied")
    for number in range(40_000):
        waiters.open(Waiter(str(number), b"id", b"type", "", lambda _: None))
        waiters.reply(str(number), answer)
    remembered = sum(waiters.reply(str(number), answer) is WaiterState.ANSWERED for number in range(40_000))
    assert 8_000 < remembered <= 16_384
