"""The Brokers that the suite is run on, and what each of them must do.

To add one: an async context manager that yields a `BrokerUnderTest`, and a `Requirement` with its rows.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from beckon_cli.probe.cases import ProbeOptions
from beckon_cli.probe.embedded import BrokerProcess, embedded_broker
from beckon_cli.probe.report import Report
from beckon_cli.probe.subscriptions import FolderSubscriptions
from beckon_cli.probe.suite import BrokerUnderTest, new_run, probe_broker
from tests.brokers.rabbitmq_server import rabbitmq_server
from tests.e2e.local_platform import port_range
from tests.nats_server import NatsServer

OPTIONS = ProbeOptions(
    wait=60.0,
    silence=4.0,
    slow=1.0,
    calls=10,
    settle=1.0,
    retry=2,
    backoff=0.1,
    restart_load=2.0,
    restart_wait=6.0,
)
"""Long deadlines where an answer must come, short ones where none may come."""


@dataclass(frozen=True)
class Requirement:
    """What a Broker must do: for each case, the words that its row must have, as a regular expression.

    The words are those of the verdict and the row: `good: 10 of 10 answered`.
    """

    open: Callable[[Path], AbstractAsyncContextManager[BrokerUnderTest]]
    rows: Mapping[str, str]
    options: ProbeOptions = field(default=OPTIONS)


def probe(requirement: Requirement, folder: Path) -> Report:
    """Run the suite on a Broker, which has the folder for its own."""

    async def run() -> Report:
        async with requirement.open(folder) as broker:
            return await probe_broker(broker, requirement.options, new_run())

    return asyncio.run(run())


def find_unmet_rows(report: Report, rows: Mapping[str, str]) -> dict[str, str]:
    """Return the rows of a report that are not as they must be, each with what it is."""
    found = {
        row.case: f"{row.verdict}: {row.outcome}; runs {row.runs}; dead letter {row.dead_letter}"
        for row in report.rows
    }
    missing = dict.fromkeys(rows.keys() ^ found.keys(), "not there")
    return missing | {
        case: found[case]
        for case, words in rows.items()
        if case in found and not re.match(words, found[case])
    }


@asynccontextmanager
async def embedded(_: Path) -> AsyncIterator[BrokerUnderTest]:
    """Run the embedded broker with its log in memory."""
    async with embedded_broker(_environment()) as broker:
        subscriptions = FolderSubscriptions(broker.folder, broker.url, new_run())
        yield BrokerUnderTest(
            broker.url, "embedded, in memory", subscriptions, restart=broker.restart, owned=True
        )


_LEASE = {"BECKON_BROKER_LEASE_SECONDS": "2"}
"""A short one: after it, another process takes over what a killed one had."""


@asynccontextmanager
async def jetstream(folder: Path) -> AsyncIterator[BrokerUnderTest]:
    """Run the embedded broker with its log in NATS JetStream."""
    server = NatsServer(folder / "nats")
    try:
        settings = {**_environment(), "BECKON_NATS_URL": server.start().url, **_LEASE}
        async with embedded_broker(settings) as broker:
            subscriptions = FolderSubscriptions(broker.folder, broker.url, new_run())
            yield BrokerUnderTest(
                broker.url, "embedded, on JetStream", subscriptions, restart=broker.restart, owned=True
            )
    finally:
        server.stop()


@asynccontextmanager
async def rabbitmq(folder: Path) -> AsyncIterator[BrokerUnderTest]:
    """Run a RabbitMQ, and the bridge with the rules of Knative's Broker on it."""
    with rabbitmq_server() as address:
        port = str(port_range())
        words = ["tests.brokers.rabbitmq_bridge", address, port, str(folder)]
        bridge = BrokerProcess(f"http://127.0.0.1:{port}/", folder, words, _environment())
        try:
            await bridge.start()
            subscriptions = FolderSubscriptions(folder, bridge.url, new_run())
            yield BrokerUnderTest(bridge.url, "RabbitMQBroker", subscriptions, restart=bridge.restart)
        finally:
            await bridge.kill()


def _environment() -> Mapping[str, str]:
    """Return the environment without settings of Beckon."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BECKON_")}


_ALL_ANSWERED = r"good: 10 of 10 answered; runs 1; dead letter $"
_IN_TIME = "good: 502 undeliverable with the reason"
_ANSWERED = "good: answered; runs 1; dead letter $"
_SILENT = r"limited: 504 timeout; runs 1; "

_EMBEDDED_ROWS = {
    "reply-trigger": r'good: CESQL .* passes replies alone; `replyid: ""` passes replies alone;',
    "acknowledgement": "good: at once",
    "echo": _ALL_ANSWERED,
    "parallel": "good: 10 of 10 answered, all side by side; runs 1",
    "slow": "good: answered, after 1 s of work; runs 1",
    "refusal": f"{_IN_TIME}; runs 1; dead letter code 400, the tool's text, not begun",
    "failure": f"{_IN_TIME}; runs 1; dead letter code 500, the tool's text$",
    "refused-connection": f"{_IN_TIME}, safe to repeat; .* not begun",
    "plain-json": f"{_IN_TIME}; runs 1; dead letter code 502, `the answer 200",
    "broken-connection": f"{_IN_TIME}; runs 1;",
    "dead-letter": "good: the code, the tool's text, whether the tool can have begun",
    "reply-correlationid": _ANSWERED,
    "reply-all-extensions": _ANSWERED,
    "reply-responseid": _ANSWERED,
    "reply-nothing": _ANSWERED,
    "reply-json": _ANSWERED,
    "reply-204": _ANSWERED,
    "reply-202": _ANSWERED,
}

EMBEDDED = Requirement(
    embedded,
    # What the killed process had in memory is lost, and its callers learn it at their deadline.
    {**_EMBEDDED_ROWS, "restart": r"limited: \d+ of 24 answered, 5 × 504 timeout.*; of the others 5 ran"},
)
"""The embedded broker on its log in memory."""

JETSTREAM = Requirement(
    jetstream,
    # No call is lost; one that was at work is not repeated, and its caller gets that as the reason. On a busy
    # machine further calls find the broker gone, or not back yet. No acknowledged call ends in a timeout.
    {
        **_EMBEDDED_ROWS,
        "restart": r"limited: \d+ of 24 answered(?=.* [5-9] × 502 undeliverable)"
        r"(, \d+ × 50(2 undeliverable|3 broker-busy|4 outcome-unknown))*; of the others [5-9] ran; runs 1",
    },
    replace(OPTIONS, restart_wait=45.0),
)
"""The embedded broker on its log in NATS JetStream."""

RABBITMQ = Requirement(
    rabbitmq,
    {
        "reply-trigger": r'limited: CESQL .* passes every event; `replyid: ""` passes nothing;',
        "acknowledgement": "good: at once",
        "echo": _ALL_ANSWERED,
        "parallel": "limited: 10 of 10 answered, one at a time; runs 1",
        "slow": "good: answered, after 1 s of work; runs 1",
        "refusal": "bad: 504 timeout; runs 1; dead letter none",
        "failure": "limited: 502 undeliverable without the reason; runs 3; dead letter code 500;?$",
        "refused-connection": "limited: 502 .* said to be perhaps delivered; .*; dead letter code -1$",
        "plain-json": "bad: 504 timeout; runs 1; dead letter none",
        "broken-connection": "limited: 502 undeliverable without the reason; runs 3; dead letter code -1$",
        "dead-letter": "limited: the code, no text of the tool, not whether .* none came for: ",
        # Without a filter, a reply arrives with any of its attributes.
        "reply-correlationid": _ANSWERED,
        "reply-all-extensions": _ANSWERED,
        "reply-responseid": _ANSWERED,
        "reply-nothing": _SILENT,
        "reply-json": _SILENT,
        "reply-204": _SILENT,
        "reply-202": _SILENT,
        # Durable: lost are only calls that the ingress had not acknowledged when it was killed. On a busy
        # machine more calls find it gone. No acknowledged call ends in a timeout.
        "restart": r"(good|limited): \d+ of 24 answered(, \d+ × 50(2 undeliverable|4 outcome-unknown))*;",
    },
    replace(OPTIONS, restart_wait=45.0),
)
"""A RabbitMQ whose bindings and dispatchers follow the rules of Knative's RabbitMQ Broker."""
