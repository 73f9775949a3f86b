"""Starting and ending telemetry, and the fields of log lines."""

import os
from collections.abc import Callable, Mapping

from beckon_agent.core.context import request_id
from beckon_agent.telemetry import tool_spans
from beckon_contract import tracing


def start_telemetry(environment: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Export spans where the environment names a collector; return what sends the last ones.

    Raises `ValueError` for one of OpenTelemetry's variables that cannot be used.
    """
    tool_spans.capture_content(enabled=tool_spans.is_content_wanted(environment))
    return tracing.start("beckon-agent", environment, wordless=True)


def log_fields() -> dict[str, str]:
    """Return the trace and the request that a line of the log belongs to."""
    request = request_id()
    return tracing.log_fields() | ({} if request == "-" else {"request_id": request})
