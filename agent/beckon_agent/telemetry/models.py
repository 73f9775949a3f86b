"""Which model answers, at which server: known only where the request is sent."""

from urllib.parse import urlsplit

from opentelemetry import trace

from beckon_contract.tracing import carried


def tell_model(model: str, base_url: str) -> None:
    """Name the current span after the model that it asks."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    address = urlsplit(base_url)
    span.update_name(f"chat {model}")
    span.set_attribute("gen_ai.request.model", model)
    span.set_attribute("server.address", address.hostname or "")
    span.set_attribute("server.port", address.port or (443 if address.scheme == "https" else 80))


def tell_offered(tools: int) -> None:
    """Tell the span of the run how many tools there were, of which its model is sent some."""
    trace.get_current_span().set_attribute("beckon.tools.offered", tools)


def trace_header() -> dict[str, str]:
    """Return the header by which the model's server joins the trace.

    Without `tracestate`: what the vendors of others noted there is no business of a model's server.
    """
    return {name: value for name, value in carried().items() if name == "traceparent"}
