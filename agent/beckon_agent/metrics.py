"""The agent's numbers for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from beckon_agent.runs import CallFinished
from beckon_contract.failures import Reason

_REASONS = frozenset(reason.value for reason in Reason)


class Metrics:
    """Runs and calls, by agent, tool and outcome."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._runs = Counter(
            "beckon_agent_runs_total", "Runs that ended.", ["agent", "ending"], registry=self.registry
        )
        self._calls = Counter(
            "beckon_agent_tool_calls_total",
            "Tool calls that ended.",
            ["tool", "outcome"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "beckon_agent_tool_call_seconds", "How long tool calls took.", ["tool"], registry=self.registry
        )
        self._tools = Gauge("beckon_agent_tools", "Tools in the catalogue.", registry=self.registry)
        self._running = Gauge(
            "beckon_agent_running", "Runs and calls by hand that are under way.", registry=self.registry
        )

        self._connected = Gauge(
            "beckon_agent_catalogue_connected",
            "Whether agents and tools are followed now: 1, or 0 where the last ones known are in force.",
            registry=self.registry,
        )
        self._connected.set(1)
        self._age = Gauge(
            "beckon_agent_catalogue_age_seconds",
            "Seconds since the API server last said anything; up to about a minute is usual.",
            registry=self.registry,
        )

    def follow(self, connected: Callable[[], bool], age: Callable[[], float]) -> None:
        """Tell how it stands with the API server, where agents and tools come from one."""
        self._connected.set_function(connected)
        self._age.set_function(age)

    def run(self, agent: str, ending: str) -> None:
        """Count a run that ended."""
        self._runs.labels(agent, ending).inc()

    def call(self, call: CallFinished) -> None:
        """Count a tool call; a name that the model invented is counted as one, whatever it is."""
        outcome = _outcome(call.result) if call.failed else "answered"
        name = "(unknown)" if outcome == Reason.UNKNOWN_TOOL else call.name
        self._calls.labels(name, outcome).inc()
        self._seconds.labels(name).observe(call.seconds)

    def text(self, *, tools: int, running: int) -> bytes:
        """Return the numbers in Prometheus' text format."""
        self._tools.set(tools)
        self._running.set(running)
        return generate_latest(self.registry)


def _outcome(result: object) -> str:
    """Return the reason of a failure; one that a tool made up would be a label without bound."""
    error = result.get("error") if isinstance(result, dict) else None
    reason = error.get("reason") if isinstance(error, dict) else None
    return reason if isinstance(reason, str) and reason in _REASONS else Reason.TOOL_FAILED.value
