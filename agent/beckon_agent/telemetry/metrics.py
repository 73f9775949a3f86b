"""The agent's metrics for Prometheus."""

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from beckon_agent.core.context import Principal
from beckon_agent.core.model_types import RefusedCall, Usage
from beckon_agent.core.run_events import CallFinished
from beckon_agent.telemetry.tool_spans import outcome_label
from beckon_contract.failures import Reason
from beckon_contract.resources.tools import CallOrigin

_PREFIX = "beckon_agent_"
_TOOLS = (0, 8, 16, 32, 64, 96, 128)
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


def allow_every_principal(_: Principal) -> bool:
    """Let every admitted caller read the metrics."""
    return True


class Metrics:
    """Runs and calls, by agent, tool and outcome."""

    def __init__(self, may_read: Callable[[Principal], bool] | None = allow_every_principal) -> None:
        """Take `may_read`, the permission to read at the agent's port.

        It is `None` if the metrics have a port of their own.
        """
        self.may_read = may_read
        self.registry = CollectorRegistry()
        self._runs = self._add_counter("runs_total", "Runs that ended.", "agent", "ending")
        self._calls = self._add_counter(
            "tool_calls_total", "Tool calls that ended.", "agent", "tool", "outcome"
        )
        self._obtained = self._add_counter(
            "calls_obtained_total",
            "Calls that a model wrote: by the API, in a text dialect, or recovered from its text.",
            "agent",
            "origin",
        )
        self._refused = self._add_counter(
            "text_calls_refused_total", "Calls in texts that were not made.", "agent", "tool", "reason"
        )
        self._requests = self._add_counter(
            "requests_total",
            "Requests that were answered, but those of health and metrics.",
            "route",
            "status",
        )
        self._limits = self._add_counter(
            "limits_reached_total", "Runs and calls that a limit did not let begin.", "agent", "limit"
        )
        self._seconds = self._add_histogram("tool_call_seconds", "How long tool calls took.", "tool")
        self._model_seconds = self._add_histogram(
            "model_seconds", "How long answers of the model took, to their last token.", "agent", "outcome"
        )
        self._first_token = self._add_histogram(
            "model_first_token_seconds", "How long the first token of an answer took.", "agent"
        )
        self._tokens = self._add_counter(
            "model_tokens_total", "Tokens that the model's server counted: input and output.", "agent", "type"
        )
        self._sent = self._add_histogram(
            "model_tools", "How many tools a request to the model had.", "agent", buckets=_TOOLS
        )
        self._tools = self._add_gauge("tools", "Tools in the catalogue.")
        self._running = self._add_gauge("running", "Runs and calls by hand that are in progress.")
        self._resumed = self._add_counter(
            "runs_resumed_total",
            "Stored runs that went on here: after a process was lost over them, or after a wait.",
            "after",
        )
        self._late = self._add_counter(
            "late_replies_total",
            "Replies that no connection waited for any more, by outcome.",
            "outcome",
        )
        self._follow_nothing()

    def _follow_nothing(self) -> None:
        """Create the gauges of a catalogue without an API server."""
        self._connected = self._add_gauge(
            "catalogue_connected",
            "Whether agents and tools are followed now: 1, or 0 where the last ones known are in force.",
        )
        self._connected.set(1)
        self._age = self._add_gauge(
            "catalogue_age_seconds",
            "Seconds since the API server last said anything; up to about a minute is usual.",
        )

    def follow_connection(self, connected: Callable[[], bool], age: Callable[[], float]) -> None:
        """Read the state of the API server connection from these callables.

        Only for agents and tools from an API server. `age` returns seconds.
        """
        self._connected.set_function(connected)
        self._age.set_function(age)

    def count_run(self, agent: str, ending: str) -> None:
        """Count an ended run."""
        self._runs.labels(agent, ending).inc()

    def count_request(self, route: str, status: int) -> None:
        """Count an answered request by route and status.

        A request without a route is counted as `(none)`, for any path.
        """
        self._requests.labels(route or "(none)", status).inc()

    def limit_reached(self, agent: str, limit: str) -> None:
        """Count a limit reached, by the names in docs/operate.md."""
        self._limits.labels(agent, limit).inc()

    def count_origin(self, agent: str, origin: CallOrigin) -> None:
        """Count a call by its origin, before anything is done with it."""
        self._obtained.labels(agent, origin).inc()

    def count_call(self, call: CallFinished, agent: str) -> None:
        """Count a tool call by its outcome and duration.

        All tool names invented by the model share the label `(unknown)`.
        """
        outcome = outcome_label(call)
        name = "(unknown)" if outcome == Reason.UNKNOWN_TOOL else call.name
        self._calls.labels(agent, name, outcome).inc()
        self._seconds.labels(name).observe(call.seconds)

    def count_refused(self, call: RefusedCall, agent: str) -> None:
        """Count a refused call in a model's text; it stays text."""
        self._refused.labels(agent, call.name or "(unknown)", call.reason).inc()

    def model_request(self, agent: str, tools: int) -> None:
        """Record the number of tools in a request to the model."""
        self._sent.labels(agent).observe(tools)

    def count_answer(
        self, agent: str, outcome: str, *, seconds: float, first: float | None, usage: Usage | None
    ) -> None:
        """Count an answer of the model, its times and its tokens.

        `outcome` is `answered`, `failed` or `cancelled`; `seconds` and `first` are in seconds, `first` up to
        the first token.
        """
        self._model_seconds.labels(agent, outcome).observe(seconds)
        if first is not None:
            self._first_token.labels(agent).observe(first)
        if usage is not None:
            self._tokens.labels(agent, "input").inc(usage.prompt_tokens)
            self._tokens.labels(agent, "output").inc(usage.completion_tokens)

    def count_resumed(self, *, lost: bool) -> None:
        """Count a stored run resumed by this process.

        With `lost` another process was lost over it; otherwise the run resumes after a wait.
        """
        self._resumed.labels("loss" if lost else "wait").inc()

    def late_reply(self, outcome: str) -> None:
        """Count a late reply, by the outcomes in docs/operate.md."""
        self._late.labels(outcome).inc()

    def to_text(self, *, tools: int, running: int) -> bytes:
        """Return the numbers in Prometheus' text format."""
        self._tools.set(tools)
        self._running.set(running)
        return generate_latest(self.registry)

    def _add_counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{_PREFIX}{name}", text, labels, registry=self.registry)

    def _add_gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"{_PREFIX}{name}", text, registry=self.registry)

    def _add_histogram(
        self, name: str, text: str, *labels: str, buckets: Sequence[float] = _SECONDS
    ) -> Histogram:
        return Histogram(f"{_PREFIX}{name}", text, labels, buckets=buckets, registry=self.registry)
