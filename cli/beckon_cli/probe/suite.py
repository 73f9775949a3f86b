"""The suite: subscribes to a Broker, tries the cases, reports a row for each.

Its only parameter is the Broker. First come the cases whose figures others would disturb, one after the
other; then those that mostly wait, side by side; at the end the restart.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from beckon_cli.errors import CommandError
from beckon_cli.probe.calls import open_caller
from beckon_cli.probe.cases import (
    Probe,
    ProbeOptions,
    describe_letters,
    try_acknowledgement,
    try_echo,
    try_error,
    try_parallel,
    try_reply,
    try_slow,
)
from beckon_cli.probe.endpoint import Endpoint, find_own_address, serve_endpoint
from beckon_cli.probe.report import TITLES, Report, Row, Verdict
from beckon_cli.probe.restart import Restart, try_restart
from beckon_cli.probe.subscriptions import RUN_LABEL, Subscriptions
from beckon_cli.probe.tools import REPLY_SUFFIX, Tools
from beckon_contract.knative.reply_triggers import REPLY_ATTRIBUTE, reply_filter

_FILTERS: Mapping[str, Mapping[str, Any]] = {
    "cesql": reply_filter("", named=["responseid"]),
    "attribute": {"filter": {"attributes": {REPLY_ATTRIBUTE: ""}}},
    "none": {},
}
"""The filters of reply Triggers, the best first: that of Beckon's chart, which passes copied attributes, too.

Where none keeps other events away, the last of those that bring replies is as good and the plainest.
"""

_FIRST_POSTS = 3
_FILTER_TEXTS = {"cesql": "CESQL `EXISTS replyid OR …`", "attribute": '`replyid: ""`', "none": "no filter"}
_ERRORS = ("refusal", "failure", "refused-connection", "plain-json", "broken-connection")
_REPLIES = tuple(case for case in TITLES if case.startswith("reply-") and case != "reply-trigger")


@dataclass(frozen=True, slots=True)
class BrokerUnderTest:
    """A Broker: the URL of its ingress, its name, and what makes Triggers on it.

    `own_host` is the address of this machine for the Broker; empty for the one that leads to it. `restart`
    kills the Broker and returns once it takes events again; without it that case is left out. An `owned`
    Broker is described by the probe: it has the delivery, as in Beckon's chart, and not its Triggers.
    """

    url: str
    label: str
    subscriptions: Subscriptions
    namespace: str = "default"
    name: str = "default"
    own_host: str = ""
    restart: Restart | None = None
    owned: bool = False
    note: str = field(default="", kw_only=True)


async def probe_broker(
    broker: BrokerUnderTest,
    options: ProbeOptions,
    run: str,
    report_row: Callable[[Row], None] = lambda _: None,
) -> Report:
    """Try all cases on a Broker; `report_row` gets each row as it is known.

    `run` names this probe in Triggers and event types. Raises `CommandError` if the Broker takes no event,
    its Triggers do not become ready, or nothing of it reaches the probe.
    """
    parts = urlsplit(broker.url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    host = broker.own_host or find_own_address(parts.hostname or "", port)
    tools = Tools(options.slow, options.calls, options.patience)
    behaviours = tools.behaviours()
    async with serve_endpoint(host, behaviours) as endpoint, open_caller(broker.url) as caller:
        probe = Probe(broker.url, endpoint, tools, caller, options, run)
        triggers = [*_tool_triggers(broker, probe, behaviours), *_reply_triggers(broker, probe)]
        try:
            owned = [_describe_broker(broker, probe)] if broker.owned else []
            await broker.subscriptions.apply([*owned, *triggers])
            await _choose_reply_trigger(probe)
            endpoint.shim_url = caller.reply_url
            rows = await _try_cases(probe, broker.restart, report_row)
        finally:
            await asyncio.shield(broker.subscriptions.remove())
    order = list(TITLES)
    rows.sort(key=lambda row: order.index(row.case))
    return Report(broker.url, broker.label, tuple(rows), asdict(options), broker.note)


def new_run() -> str:
    """Return a name for one run of the suite."""
    return uuid4().hex[:8]


async def _try_cases(probe: Probe, restart: Restart | None, report_row: Callable[[Row], None]) -> list[Row]:
    rows: list[Row] = []

    async def note(trying: Awaitable[Row]) -> None:
        row = await trying
        rows.append(row)
        report_row(row)

    for attempt in (try_acknowledgement, try_echo, try_parallel):
        await note(attempt(probe))
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(note(try_slow(probe)))
        for case in _ERRORS:
            tasks.create_task(note(try_error(probe, case)))
        for case in _REPLIES:
            tasks.create_task(note(try_reply(probe, case)))
    if restart is not None:
        await note(try_restart(probe, restart))
    for summary in (describe_letters(rows), _describe_reply_trigger(probe)):
        rows.append(summary)
        report_row(summary)
    return rows


async def _choose_reply_trigger(probe: Probe) -> None:
    """Find the reply Triggers that bring a reply; choose the one that brings the least else.

    Events are posted again while none comes: a Broker may lose those of a Trigger that has just become ready.
    Raises `CommandError` if the Broker refuses events, or if no Trigger brings the reply.
    """
    endpoint = probe.endpoint
    for _ in range(_FIRST_POSTS):
        foreign, status, _ = await probe.post("foreign")
        if not 200 <= status < 300:
            raise CommandError(f"the Broker at {probe.broker_url} refuses events: status {status}", status=2)
        reply, _, _ = await probe.post(f"a{REPLY_SUFFIX}", replyid="probe")
        arrived = await endpoint.wait_for_reply(1, reply, probe.options.wait / _FIRST_POSTS)
        if arrived:
            break
    else:
        raise CommandError(
            f"no event came from the Broker within {probe.options.wait:g} s; can it reach this machine at "
            f"{endpoint.url}? Name another address with --own-address",
            status=2,
        )
    # The other Triggers bring it at about the same time, or never.
    arrived = await endpoint.wait_for_reply(len(_FILTERS), reply, probe.options.settle)
    narrow = [name for name in _FILTERS if name in arrived and not _has_reply(endpoint, name, foreign)]
    endpoint.reply_trigger = next(
        iter([*narrow, *(name for name in reversed(list(_FILTERS)) if name in arrived)])
    )


def _has_reply(endpoint: Endpoint, trigger: str, event_id: str) -> bool:
    return any(event.id == event_id for event in endpoint.replies[trigger])


def _describe_reply_trigger(probe: Probe) -> Row:
    """Return the row about filters, from all events of this run that the reply Triggers brought.

    On a Broker in use they bring the replies of others, too.
    """
    texts, endpoint = [], probe.endpoint
    for name, text in _FILTER_TEXTS.items():
        events = [event for event in endpoint.replies[name] if event.type.startswith(probe.event_type(""))]
        replies = sum(event.type.endswith(REPLY_SUFFIX) for event in events)
        passes = "nothing" if not events else "replies alone" if replies == len(events) else "every event"
        if name != "none":
            texts.append(f"{text} passes {passes}")
    chosen = endpoint.reply_trigger
    verdict = Verdict.LIMITED if chosen == "none" else Verdict.GOOD
    return Row("reply-trigger", verdict, "; ".join(texts))


def _tool_triggers(
    broker: BrokerUnderTest, probe: Probe, cases: Mapping[str, object]
) -> Sequence[Mapping[str, Any]]:
    """Return a Trigger for each tool, with the delivery of the options unless the Broker has it."""
    endpoint = probe.endpoint
    delivery = {} if broker.owned else {"delivery": _delivery(probe)}
    subscribers = {case: f"{endpoint.url}/tools/{case}" for case in cases}
    subscribers["refused-connection"] = endpoint.refusing_url
    return [
        _trigger(
            broker,
            f"{probe.run}-{case}",
            {
                "filter": {"attributes": {"type": probe.event_type(case)}},
                "subscriber": {"uri": url},
                **delivery,
            },
            probe.run,
        )
        for case, url in subscribers.items()
    ]


def _delivery(probe: Probe) -> Mapping[str, Any]:
    return {
        "retry": probe.options.retry,
        "backoffPolicy": "exponential",
        "backoffDelay": f"PT{probe.options.backoff:g}S",
        "deadLetterSink": {"uri": f"{probe.endpoint.url}/dead-letters"},
    }


def _describe_broker(broker: BrokerUnderTest, probe: Probe) -> Mapping[str, Any]:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"name": broker.name, "namespace": broker.namespace},
        "spec": {"delivery": _delivery(probe)},
    }


def _reply_triggers(broker: BrokerUnderTest, probe: Probe) -> Sequence[Mapping[str, Any]]:
    """Return a reply Trigger for each kind of filter."""
    return [
        _trigger(
            broker,
            f"{probe.run}-replies-{name}",
            {**spec, "subscriber": {"uri": f"{probe.endpoint.url}/replies/{name}"}, "delivery": {"retry": 0}},
            probe.run,
        )
        for name, spec in _FILTERS.items()
    ]


def _trigger(broker: BrokerUnderTest, name: str, spec: Mapping[str, Any], run: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Trigger",
        "metadata": {
            "name": f"beckon-probe-{name}",
            "namespace": broker.namespace,
            "labels": {RUN_LABEL: run},
        },
        "spec": {"broker": broker.name, **spec},
    }
