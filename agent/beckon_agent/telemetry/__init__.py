"""Telemetry: spans of requests, runs, model and tool calls, metrics, and the fields of log lines.

Names and attributes are those of OpenTelemetry's semantic conventions: HTTP, GenAI, CloudEvents.
Everything that knows OpenTelemetry belongs here; `metrics` are those for Prometheus. Without a
collector (`OTEL_EXPORTER_OTLP_ENDPOINT`) no SDK is loaded, and every span is a no-operation. The content of
prompts and results is in no span unless a setting requests it, and the text of an error never is.
"""
