"""The agent's numbers for Prometheus."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from beckon_agent.model.types import Usage
from beckon_agent.runs import CallFinished
from beckon_agent.telemetry.outcomes import outcome
from beckon_contract.failures import Reason

_TOOLS = (0, 8, 16, 32, 64, 96, 128)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


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
            ["agent", "tool", "outcome"],
            registry=self.registry,
        )
        self._seconds = self._histogram("tool_call_seconds", "How long tool calls took.", "tool")
        self._model_seconds = self._histogram(
            "model_seconds", "How long answers of the model took, to their last token.", "agent", "outcome"
        )
        self._first_token = self._histogram(
            "model_first_token_seconds", "How long the first token of an answer took.", "agent"
        )
        self._tokens = Counter(
            "beckon_agent_model_tokens_total",
            "Tokens that the model's server counted: input and output.",
            ["agent", "type"],
            registry=self.registry,
        )
        self._sent = Histogram(
            "beckon_agent_model_tools",
            "How many tools a request to the model had.",
            ["agent"],
            buckets=_TOOLS,
            registry=self.registry,
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

    def call(self, call: CallFinished, agent: str) -> None:
        """Count a tool call; a name that the model invented is counted as one, whatever it is."""
        became = outcome(call)
        name = "(unknown)" if became == Reason.UNKNOWN_TOOL else call.name
        self._calls.labels(agent, name, became).inc()
        self._seconds.labels(name).observe(call.seconds)

    def asked(self, agent: str, tools: int) -> None:
        """Count a request to the model, which has so many tools."""
        self._sent.labels(agent).observe(tools)

    def model(
        self, agent: str, became: str, *, seconds: float, first: float | None, usage: Usage | None
    ) -> None:
        """Count an answer of the model: `answered`, `failed` or `cancelled`; `first` is in seconds."""
        self._model_seconds.labels(agent, became).observe(seconds)
        if first is not None:
            self._first_token.labels(agent).observe(first)
        if usage is not None:
            self._tokens.labels(agent, "input").inc(usage.prompt_tokens)
            self._tokens.labels(agent, "output").inc(usage.completion_tokens)

    def text(self, *, tools: int, running: int) -> bytes:
        """Return the numbers in Prometheus' text format."""
        self._tools.set(tools)
        self._running.set(running)
        return generate_latest(self.registry)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"beckon_agent_{name}", text, labels, buckets=_SECONDS, registry=self.registry)
