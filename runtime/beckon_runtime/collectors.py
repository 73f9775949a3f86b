"""Detection of the trace collector named by the environment.

The module is pure, so that a service without a collector loads nothing.

The variables are those of OpenTelemetry (opentelemetry.io, "Environment Variable Specification").
"""

from collections.abc import Mapping

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def is_named(environment: Mapping[str, str]) -> bool:
    """Return True if there is a collector to send to.

    Raises `ValueError` for a URL or a protocol that is not supported.
    """
    endpoints = [name for name in _ENDPOINTS if environment.get(name)]
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if not endpoints or disabled or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return False
    if not environment[endpoints[0]].startswith(("http://", "https://")):
        raise ValueError(f"{endpoints[0]}: write the collector's URL, such as http://collector:4318")
    for name in _PROTOCOLS:
        if environment.get(name, "http/protobuf") != "http/protobuf":
            raise ValueError(
                f"{name}: only http/protobuf is supported; unset it, and name the collector's port "
                "for OTLP over HTTP, which is usually 4318"
            )
    return True
