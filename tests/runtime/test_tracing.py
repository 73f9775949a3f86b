"""Traces: begun only where a collector is named, carried on as W3C says, and nothing else of strangers."""

import subprocess
import sys

import pytest
from opentelemetry import baggage, trace
from opentelemetry.context import attach, detach

from beckon_runtime import tracing
from tests.e2e.local_platform import clean_environment

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COLLECTOR = "http://127.0.0.1:4318"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {ENDPOINT: ""},
        {ENDPOINT: COLLECTOR, "OTEL_SDK_DISABLED": "true"},
        {ENDPOINT: COLLECTOR, "OTEL_TRACES_EXPORTER": "none"},
    ],
    ids=str,
)
def test_without_a_collector_no_sdk_is_loaded(environment: dict[str, str]) -> None:
    program = (
        "import sys\n"
        "from beckon_runtime import tracing\n"
        f"tracing.start('test', {environment!r})()\n"
        "heavy = ('opentelemetry.sdk', 'google', 'requests')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True
    )

    assert done.stdout == "[]\n"


@pytest.mark.parametrize("service", ["beckon_shim", "beckon_broker"])
def test_without_a_collector_shim_and_broker_load_nothing_for_traces(service: str) -> None:
    program = (
        "import sys\n"
        f"import {service}.__main__ as program, {service}.service\n"
        "with program._tracing() as traced:\n"
        "    print(traced, [name for name in sys.modules if name.startswith('opentelemetry')])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_environment({}), capture_output=True, text=True, check=True
    )

    assert done.stdout == "None []\n"


SAMPLERS = {
    "parentbased_always_on": [False, True, False],
    "parentbased_always_off": [False, True, True],
    # Decides anew for every span, so each has to be made.
    "always_on": [False, False, False],
}


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_below_an_unsampled_span_none_is_made_where_the_sampler_follows_parents(sampler: str) -> None:
    program = (
        "from opentelemetry import trace\n"
        "from opentelemetry.context import Context, attach\n"
        "from beckon_runtime import tracing\n"
        f"stop = tracing.start('test', {{'{ENDPOINT}': '{COLLECTOR}'}})\n"
        "seen = [tracing.is_unrecorded()]\n"
        f"attach(tracing.continued({{'traceparent': '{PARENT[:-2]}00'}}))\n"
        "seen.append(tracing.is_unrecorded())\n"
        "attach(trace.set_span_in_context(trace.get_tracer('t').start_span('root', Context())))\n"
        "print(seen + [tracing.is_unrecorded()])"
    )
    environment = clean_environment({ENDPOINT: COLLECTOR, "OTEL_TRACES_SAMPLER": sampler})

    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stdout == f"{SAMPLERS[sampler]}\n"


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({ENDPOINT: "collector:4318"}, f"{ENDPOINT}: write the collector's URL, such as http://"),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "grpc://c:1", ENDPOINT: COLLECTOR},
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: write",
        ),
        (
            {ENDPOINT: COLLECTOR, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: only http/protobuf is supported",
        ),
    ],
)
def test_a_collector_that_cannot_be_reached_is_reported_by_its_variable(
    environment: dict[str, str], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        tracing.start("test", environment)


def test_a_trace_that_came_along_is_carried_on() -> None:
    context = tracing.continued({"traceparent": PARENT, "tracestate": "a=b"})
    assert context is not None
    token = attach(context)
    try:
        assert tracing.carried() == {"traceparent": PARENT, "tracestate": "a=b"}
        assert tracing.log_fields() == {"trace_id": PARENT[3:35], "span_id": PARENT[36:52]}
    finally:
        detach(token)


def test_outside_of_a_trace_nothing_is_carried() -> None:
    assert tracing.carried() == {}
    assert tracing.log_fields() == {}


@pytest.mark.parametrize(
    "given", ["", "00-1", "xx", PARENT.replace("0af", "zzz"), "00-" + "0" * 32 + "-" + "0" * 16 + "-01"]
)
def test_a_malformed_trace_begins_no_trace(given: str) -> None:
    assert tracing.continued({"traceparent": given}) is None
    assert tracing.continued({"tracestate": "a=b"}) is None


def test_of_strangers_only_the_trace_is_taken_and_no_long_state() -> None:
    given = {"traceparent": PARENT, "tracestate": "a=" + "b" * 600, "baggage": "user=admin"}

    context = tracing.continued(given)

    assert context is not None
    assert baggage.get_all(context) == {}
    assert len(trace.get_current_span(context).get_span_context().trace_state) == 0
