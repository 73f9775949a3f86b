"""Span attributes of a model request: model, server and number of tools.

They are recorded by the code sending the request.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from opentelemetry import trace

from beckon_contract.tracing import carried

_LONGEST_NAME = 200  # characters of what a server says


def record_model(model: str, base_url: str) -> None:
    """Name the current span after the requested model."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    address = urlsplit(base_url)
    span.update_name(f"chat {model}")
    span.set_attributes(
        {
            "gen_ai.request.model": model,
            "server.address": address.hostname or "",
            "server.port": address.port or (443 if address.scheme == "https" else 80),
        }
    )


def record_answer(payload: Mapping[str, object], *, streamed: bool) -> bool:
    """Record the answer's id and model from one of its payloads.

    Return True once this is done. Some servers send id and model in no payload, or not in the first one.
    """
    span = trace.get_current_span()
    if not span.is_recording():
        return True
    named = {f"gen_ai.response.{name}": payload.get(name) for name in ("id", "model")}
    attributes = {
        name: value[:_LONGEST_NAME] for name, value in named.items() if isinstance(value, str) and value
    }
    if attributes:
        span.set_attributes({"gen_ai.request.stream": streamed, **attributes})
    return bool(attributes)


def record_offered_tools(tools: int) -> None:
    """Record the number of tools offered to the run.

    It goes into the current span, that of the run. The model gets some of these tools.
    """
    trace.get_current_span().set_attribute("beckon.tools.offered", tools)


def trace_header() -> dict[str, str]:
    """Return the `traceparent` header for the model's server to join the trace.

    `tracestate` is left out: the entries of other vendors are not for a model's server.
    """
    return {name: value for name, value in carried().items() if name == "traceparent"}
