"""Replies go straight to the replica of the shim that waits, and by its Trigger where that fails."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web
from pydantic import ValidationError

from beckon_broker.envelope import BrokerName, seal
from beckon_broker.inbox import Inboxes, Resolve
from beckon_broker.sender import Sender
from beckon_broker.settings import Settings
from tests.broker.broker_process import RunningBroker, broker, delivery, event, running_broker, trigger
from tests.broker.subscribers import Request, event_response, subscriber
from tests.patience import eventually

NONCE = "AAAAAAAAAAAAAAAA.BBBBBBBBBBBBBBBBBBBBBB"
TOKEN = f"shim-0.{NONCE}"
REPLIES = {"attributes": {"replyid": ""}}
OF_CALLS = {"attributes": {"type": "test.call"}}


async def reply(_: Request) -> web.Response:
    """Answer as a service that knows no token: the broker adds it."""
    return event_response(event("r1", "test.reply"))


async def test_a_reply_goes_to_the_inbox_and_not_by_the_trigger_of_the_shim(tmp_path: Path) -> None:
    """Triggers of others get it as before."""
    async with subscriber(reply) as tool, subscriber() as shim, subscriber() as other:
        manifests = [
            trigger("tool", tool.url, filter=OF_CALLS),
            trigger("replies", f"{shim.url}replies", filter=REPLIES),
            trigger("other", other.url, filter={"attributes": {"type": "test.reply"}}),
        ]
        async with running_broker(tmp_path, *manifests, reply_inbox=f"{shim.url}replies") as running:
            await running.send(event("call").extended(correlationid=TOKEN))
            [seen] = await other.wait()
            await eventually(lambda: _is_empty(running))
            delivered = await running.metric("deliveries_total", trigger="replies")
            taken = await running.metric("inbox_replies_total", outcome="taken")

    [arrived] = shim.requests
    assert arrived.event.extensions["replyid"] == seen.event.extensions["replyid"] == TOKEN
    assert arrived.event.id == seen.event.id == "r1"
    assert arrived.headers["kn-namespace"] == "default"
    assert (delivered, taken) == (1, 1)


@pytest.mark.parametrize("answer", [503, 404])
async def test_a_reply_that_the_inbox_does_not_take_comes_by_the_trigger(tmp_path: Path, answer: int) -> None:
    async with subscriber(reply) as tool, subscriber() as inbox, subscriber() as shim:
        inbox.script += [web.Response(status=answer)]
        manifests = [
            trigger("tool", tool.url, filter=OF_CALLS),
            trigger("replies", shim.url, filter=REPLIES),
        ]
        settings: dict[str, Any] = {"reply_inbox": f"{inbox.url}replies", "reply_subscriber": shim.url}
        async with running_broker(tmp_path, *manifests, **settings) as running:
            await running.send(event("call").extended(correlationid=TOKEN))
            [arrived] = await shim.wait()
            refused = await running.metric("inbox_replies_total", outcome="refused")

    assert (len(inbox.requests), refused) == (1, 1)
    assert arrived.event.extensions["replyid"] == TOKEN


async def test_a_reply_outlives_a_shim_that_is_away(tmp_path: Path, unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/"
    async with subscriber(reply) as tool:
        manifests = [
            broker(delivery=delivery(50, backoffDelay="PT0.1S", backoffPolicy="linear")),
            trigger("tool", tool.url, filter=OF_CALLS),
            trigger("replies", url, filter=REPLIES),
        ]
        async with running_broker(tmp_path, *manifests, reply_inbox=url) as running:
            await running.send(event("call").extended(correlationid=TOKEN))
            await tool.wait()
            await eventually(lambda: _has_retried(running))
            async with subscriber(port=unused_tcp_port) as shim:
                [arrived] = await shim.wait()

    assert arrived.event.extensions["replyid"] == TOKEN


def inboxes_at(port: int, posts: Sender, resolve: Resolve, outcomes: list[str]) -> Inboxes:
    """Return the inboxes of shim.test, which append the outcome of each reply."""
    url = f"http://shim.test:{port}/replies"
    return Inboxes(posts.post, url, "http://shim/", "replyid", resolve, count=outcomes.append)


@pytest.mark.parametrize(
    ("replica", "arrives"), [("127-0-0-2", "127.0.0.2"), ("127-0-0-3", ""), ("shim-0", ""), ("", "")]
)
async def test_a_token_chooses_among_the_addresses_of_the_shim_alone(replica: str, arrives: str) -> None:
    outcomes: list[str] = []

    async def resolve(host: str) -> frozenset[str]:
        assert host == "shim.test"
        return frozenset({"127.0.0.1", "127.0.0.2"})

    async with subscriber() as one:
        port = urlsplit(one.url).port or 0
        async with (
            subscriber(port=port, host="127.0.0.2") as two,
            subscriber(port=port, host="127.0.0.3") as stranger,
            aclosing(Sender(1024, repeats=True)) as posts,
        ):
            inboxes = inboxes_at(port, posts, resolve, outcomes)
            sealed = seal(BrokerName("default", "default"), event().extended(replyid=f"{replica}.{NONCE}"))
            served = await inboxes.hand_over(sealed)

    assert served == ("http://shim/" if arrives else "")
    assert outcomes == ["taken" if arrives else "unknown"]
    assert [len(each.requests) for each in (one, two, stranger)] == [0, int(bool(arrives)), 0]


async def test_replies_that_come_during_a_look_up_wait_for_it() -> None:
    outcomes: list[str] = []

    async def resolve(_: str) -> frozenset[str]:
        await asyncio.sleep(0.05)
        return frozenset({"127.0.0.1", "127.0.0.2"})

    async with subscriber() as one:
        port = urlsplit(one.url).port or 0
        async with (
            subscriber(port=port, host="127.0.0.2") as two,
            aclosing(Sender(1024, repeats=True)) as posts,
        ):
            inboxes = inboxes_at(port, posts, resolve, outcomes)
            replies = [event().extended(replyid=f"127-0-0-{last}.{NONCE}") for last in (1, 2)]
            sealed = [seal(BrokerName("default", "default"), each) for each in replies]
            served = await asyncio.gather(*(inboxes.hand_over(each) for each in sealed))

    assert served == ["http://shim/"] * 2
    assert outcomes == ["taken"] * 2
    assert [len(each.requests) for each in (one, two)] == [1, 1]


async def test_without_an_address_of_the_shim_a_reply_goes_by_its_trigger_and_a_warning_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("beckon_broker.inbox._NEW_SECONDS", -1.0)  # each reply looks up
    looked_up: list[str] = []
    outcomes: list[str] = []

    async def resolve(host: str) -> frozenset[str]:
        looked_up.append(host)
        raise OSError("Name or service not known")

    async with aclosing(Sender(1024, repeats=True)) as posts:
        inboxes = inboxes_at(8083, posts, resolve, outcomes)
        sealed = seal(BrokerName("default", "default"), event().extended(replyid=TOKEN))

        assert [await inboxes.hand_over(sealed) for _ in range(2)] == ["", ""]

    assert looked_up == ["shim.test"] * 2
    assert outcomes == ["unknown"] * 2
    [warning] = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "shim.test: Name or service not known" in warning
    assert "BECKON_BROKER_REPLY_INBOX" in warning


@pytest.mark.parametrize("url", ["https://shim:8083/replies", "http://shim/replies", "shim"])
def test_a_url_that_cannot_be_an_inbox_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValidationError, match="reply_inbox"):
        Settings.model_validate({"manifests": (tmp_path,), "reply_inbox": url})


async def _is_empty(running: RunningBroker) -> bool:
    return not await running.metric("queue_length")


async def _has_retried(running: RunningBroker) -> bool:
    return bool(await running.metric("retries_total"))
