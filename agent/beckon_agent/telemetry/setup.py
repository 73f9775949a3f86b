"""Starting and ending telemetry, and the fields of log lines."""

import os
from collections.abc import Callable, Mapping

from beckon_agent.core.context import request_id
from beckon_agent.telemetry import tool_spans
from beckon_contract import tracing


def start_telemetry(environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Export spans to the collector named in the environment.

    Returns a function to export the last spans and stop. Nothing is exported without a collector. Raises
    `ValueError` for an OpenTelemetry variable with an unusable value.
    """
    tool_spans.capture_content(enabled=tool_spans.is_content_wanted(environment))
    return tracing.start("beckon-agent", environment, redacted=True)


def log_fields() -> dict[str, str]:
    """Return the trace and request fields of a log line."""
    request = request_id()
    return tracing.log_fields() | ({} if request == "-" else {"request_id": request})
