"""EventTypes from the API server, followed as they change: the adapter in a cluster.

Imported only where no folders are set, since its client costs memory and time.
"""

import asyncio
import logging
from collections.abc import Sequence

from beckon_adapter.declaration import RuleRegistry
from beckon_contract.knative.eventtypes import GROUP, KIND, VERSIONS
from beckon_contract.kubernetes_objects import Key, from_object
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection, Document, name_of
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact

logger = logging.getLogger(__name__)

# v1beta2 is what Knative stores, and needs no conversion.
_API_VERSION = f"{GROUP}/{VERSIONS[1]}"
_ROLE = "give the service account the role beckon-adapter in that namespace"
_CURES = {401: _ROLE, 403: _ROLE, 404: "is Knative Eventing installed?"}
_ALL = "*"


class ClusterSource:
    """Keeps a registry of the EventTypes of namespaces, `*` for all.

    Known EventTypes stay valid while the API server cannot be reached.
    """

    def __init__(self, server: ApiClient, namespaces: Sequence[str], registry: RuleRegistry) -> None:
        self._server = server
        self._contact = Contact(_CURES)
        self._registry = registry
        scopes = (None,) if _ALL in namespaces else namespaces
        self._reflectors = [
            Reflector(server, Collection(_API_VERSION, "eventtypes", scope), self, self._contact)
            for scope in scopes
        ]

    @property
    def ready(self) -> bool:
        """True if every namespace has been read once."""
        return self._contact.complete

    async def follow(self) -> None:
        """Follow every change until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())

    async def catch_up(self) -> None:
        """Do nothing: the API server reports every change at once. Triggers become ready later than that."""

    async def close(self) -> None:
        """Close the connections to the API server."""
        await self._server.close()

    def put(self, document: Document) -> None:
        """Store a new or changed EventType. The items of a list need not state their kind."""
        try:
            self._registry.put(from_object({**document, "apiVersion": _API_VERSION, "kind": KIND}))
        except ValueError as error:
            logger.warning("an EventType is passed over: %s", error)
            self.drop(*name_of(document))

    def drop(self, namespace: str, name: str) -> None:
        """Remove a deleted EventType."""
        self._registry.drop(Key(GROUP, KIND, namespace, name))
