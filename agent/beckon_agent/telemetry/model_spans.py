"""Model, server and number of tools, recorded where the request is sent."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from opentelemetry import trace

from beckon_contract.tracing import carried

_LONGEST_NAME = 200  # characters of what a server says


def record_model(model: str, base_url: str) -> None:
    """Name the current span after the model that it asks."""
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
    """Tell the current span which answer this is, by one of its payloads; return whether that is done.

    Some servers name the answer and the model that gave it in no payload, or not in the first one.
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
    """Tell the span of the run how many tools there were, of which its model is sent some."""
    trace.get_current_span().set_attribute("beckon.tools.offered", tools)


def trace_header() -> dict[str, str]:
    """Return the header by which the model's server joins the trace.

    Without `tracestate`: what the vendors of others noted there is no business of a model's server.
    """
    return {name: value for name, value in carried().items() if name == "traceparent"}
