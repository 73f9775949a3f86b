"""Brokers as an API server holds them."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from tests.sources.api_server import ApiServer, api_server_of

READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def broker(name: str, namespace: str = "shop", **address: str) -> dict[str, Any]:
    """Return a Broker with this address."""
    return {
        "apiVersion": "eventing.knative.dev/v1",
        "kind": "Broker",
        "metadata": {"namespace": namespace, "name": name},
        "status": {**READY, "address": address} if address else {},
    }


def brokers_at(*brokers: dict[str, Any]) -> AbstractAsyncContextManager[ApiServer]:
    """Serve these Brokers, and what a test makes of them."""
    return api_server_of("brokers", *brokers)
