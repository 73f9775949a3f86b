"""The trace of a call on the wire: in the event, and in the HTTP request that carries it."""

from typing import Any

import aiohttp
import pytest
from opentelemetry.context import attach, detach

from beckon_agent.tool_calls.caller import Dispatcher
from beckon_agent.tool_calls.outcome import OutgoingCall
from beckon_contract.resources.tools import Tool
from beckon_runtime.tracing import continued
from tests.agent.telemetry.conftest import Spans
from tests.shim.support import Posted, serving

TRACE = "0af7651916cd43dd8448eb211c80319c"
GIVEN = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01", "tracestate": "a=b"}
SCHEMA = {"type": "object"}


async def sent(dispatch: str, given: dict[str, str]) -> Posted:
    """Return what a call looks like that is made in this trace."""
    context = continued(given)
    token = attach(context) if context else None
    try:
        async with serving() as server, aiohttp.ClientSession() as session:
            direct: dict[str, Any] = (
                {"dispatch": "direct", "address": server.url} if dispatch == "direct" else {}
            )
            tool = Tool("echo", "team", "echo", "my.echo", None, "Say.", SCHEMA, "spec.schemaData", **direct)
            await Dispatcher(session, server.url).send(OutgoingCall("run.0.0", tool, {}, "/agents/a", 5.0))
            return server.posts[0]
    finally:
        if token is not None:
            detach(token)


@pytest.mark.parametrize("dispatch", ["broker", "direct"])
async def test_a_call_that_is_not_sampled_goes_on_with_the_callers_trace(dispatch: str) -> None:
    posted = await sent(dispatch, GIVEN)

    for prefix in ("", "ce-"):
        assert posted.headers[f"{prefix}traceparent"].startswith(f"00-{TRACE}-")
        assert posted.headers[f"{prefix}tracestate"] == "a=b"


@pytest.mark.parametrize("dispatch", ["broker", "direct"])
async def test_a_call_that_no_one_traces_has_a_trace_of_its_own(dispatch: str) -> None:
    first, second = await sent(dispatch, {}), await sent(dispatch, {})

    assert continued({"traceparent": first.headers["ce-traceparent"]}) is not None
    assert first.headers["traceparent"] == first.headers["ce-traceparent"]
    assert first.headers["ce-traceparent"] != second.headers["ce-traceparent"]


@pytest.mark.parametrize("dispatch", ["broker", "direct"])
async def test_with_a_collector_event_and_request_name_the_span_of_the_sending(
    dispatch: str, spans: Spans
) -> None:
    posted = await sent(dispatch, GIVEN)

    span = spans.one("send my.echo")
    assert posted.headers["traceparent"] == f"00-{TRACE}-{span.context.span_id:016x}-01"
    assert posted.headers["ce-traceparent"] == posted.headers["traceparent"]
    assert dict(span.attributes or {}) == {
        "cloudevents.event_id": posted.headers["ce-id"],
        "cloudevents.event_source": posted.headers["ce-source"],
        "cloudevents.event_spec_version": "1.0",
        "cloudevents.event_type": posted.headers["ce-type"],
        "messaging.system": "cloudevents",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": "team/default",
    }
