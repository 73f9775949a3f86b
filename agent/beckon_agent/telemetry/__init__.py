"""Seeing what happens: the spans of requests, runs, model and tool calls, and what the log says of them.

Names and attributes are those of OpenTelemetry's semantic conventions: HTTP, GenAI, CloudEvents.
Here belongs all that knows OpenTelemetry; the numbers for Prometheus are in `metrics`. Without a
collector (`OTEL_EXPORTER_OTLP_ENDPOINT`) no SDK is loaded, and every span is a no-operation. What
prompts and results say is in no span unless a setting asks for it, and no text of an error ever is.
"""
