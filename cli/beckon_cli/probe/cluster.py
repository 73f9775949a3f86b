"""Triggers of a probe in a cluster, made and removed through the API server."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from beckon_cli.errors import CommandError
from beckon_cli.probe.subscriptions import READY_SECONDS, Manifest
from beckon_contract.knative.addresses import Unaddressable, published_address
from beckon_contract.kubernetes_objects import READY, condition
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, NotConfigured, Refused, object_path

_VERSION = "eventing.knative.dev/v1"
_CLASS = "eventing.knative.dev/broker.class"
_PAUSE = 0.25
_CONFLICT = 409
_DELETE_ATTEMPTS = 5


class ClusterSubscriptions:
    """Triggers in one namespace. They are deleted one by one, those of a failed creation too."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._created: list[str] = []

    async def apply(self, manifests: Sequence[Manifest]) -> None:
        """Create the Triggers; wait until each has the condition Ready."""
        try:
            for trigger in manifests:
                self._created.append(trigger["metadata"]["name"])
                await self._client.create(object_path(_VERSION, "triggers", self._namespace), trigger)
            deadline = time.monotonic() + READY_SECONDS
            for name in self._created:
                await self._wait_until_ready(name, deadline)
        except (ApiError, NotConfigured) as error:
            raise CommandError(f"cannot make Triggers in {self._namespace}: {error}", status=2) from None

    async def remove(self) -> None:
        """Delete the Triggers. Raises `CommandError` with their label's name if the API server refuses."""
        remaining = []
        for name in self._created:
            try:
                await self._delete(name)
            except (ApiError, NotConfigured) as error:
                remaining.append(f"{name} ({error})")
        if remaining:
            raise CommandError(f"these Triggers are left in {self._namespace}: {', '.join(remaining)}")

    async def _wait_until_ready(self, name: str, deadline: float) -> None:
        path = object_path(_VERSION, "triggers", self._namespace, name)
        while True:
            status = (await self._client.get(path)).get("status") or {}
            ready = condition(status, READY)
            if ready is not None and ready.status == "True":
                return
            if time.monotonic() > deadline:
                cause = f"{ready.reason}: {ready.message}" if ready is not None else "it has no status"
                raise CommandError(f"the Trigger {name} does not become ready: {cause}", status=2)
            await asyncio.sleep(_PAUSE)

    async def _delete(self, name: str) -> None:
        """Delete a Trigger, whatever version it has by now."""
        path = object_path(_VERSION, "triggers", self._namespace, name)
        for attempt in range(_DELETE_ATTEMPTS):
            document = await self._client.find(path)
            if document is None:
                return
            metadata = document["metadata"]
            try:
                await self._client.delete(path, metadata["uid"], metadata["resourceVersion"])
            except Refused as error:
                if error.status == 404:
                    return
                if error.status != _CONFLICT or attempt == _DELETE_ATTEMPTS - 1:
                    raise


async def read_broker(client: ApiClient, namespace: str, name: str) -> tuple[str, str]:
    """Return the class and the address of a Broker.

    The address is "" if its status has none. Raises `CommandError` if there is no such Broker, or no access.
    """
    try:
        broker: dict[str, Any] | None = await client.find(object_path(_VERSION, "brokers", namespace, name))
        if broker is None:
            raise CommandError(f"there is no Broker {namespace}/{name}", status=2)
        address = published_address(broker.get("status") or {}, "the Broker's address")
    except (ApiError, NotConfigured, Unaddressable) as error:
        raise CommandError(f"cannot read the Broker {namespace}/{name}: {error}", status=2) from None
    annotations = broker["metadata"].get("annotations") or {}
    return annotations.get(_CLASS, ""), "" if address is None else address.url
