"""What begins and what does not, by OpenTelemetry's own variables."""

import subprocess
import sys

import pytest

from beckon_agent.telemetry import spans
from beckon_agent.telemetry.spans import start_telemetry

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


def test_without_a_collector_the_agent_loads_no_sdk() -> None:
    program = (
        "import sys\n"
        "import beckon_agent.__main__, beckon_agent.telemetry.run_spans, beckon_agent.telemetry.spans\n"
        "from beckon_agent.telemetry.spans import start_telemetry\n"
        "start_telemetry({})()\n"
        "heavy = ('opentelemetry.sdk', 'opentelemetry.exporter', 'google.protobuf', 'requests')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "environment",
    [{ENDPOINT: "nonsense"}, {spans.VARIABLE: "perhaps"}],
    ids=lambda given: next(iter(given)),
)
def test_a_variable_that_cannot_be_used_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(environment))}: "):
        start_telemetry(environment)

    assert not spans.captures_content()
