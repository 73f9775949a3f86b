"""Lists of what is watched: the first one, and the comparisons that find what no watch told of.

A watch that has to begin anew lists what is there, and says nothing of what went in the meantime.
"""

import asyncio
import logging
from typing import Any

import httpx2

from beckon_operator.api import Api, Refused, path_to
from beckon_operator.cluster import Cluster
from beckon_operator.kinds import Kind
from beckon_operator.metrics import Metrics
from beckon_operator.observed import version_of

logger = logging.getLogger(__name__)

# Seconds in which a watch may still tell of what a list already has.
_LAG = 2.0


class Listing:
    """Lists every kind in the watched namespaces (none: all of them) into the cluster."""

    def __init__(
        self,
        api: Api,
        cluster: Cluster,
        kinds: tuple[Kind, ...],
        namespaces: tuple[str, ...],
        metrics: Metrics,
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._kinds = kinds
        self._namespaces = namespaces
        self._metrics = metrics

    async def read_all(self) -> None:
        """Read every object of every kind; raise what a request of `Api` raises."""
        for kind in self._kinds:
            await self._read(kind)

    async def compare(self) -> None:
        """Compare what is known with the versions in the cluster, and read anew what differs."""
        for kind in self._kinds:
            try:
                await self._compare(kind)
            except (Refused, httpx2.TransportError) as error:
                logger.warning("%s could not be compared: %r", kind.plural, error)
                self._metrics.failures.labels("compare").inc()

    async def _compare(self, kind: Kind) -> None:
        if not await self._differs(kind):
            return
        await asyncio.sleep(_LAG)
        if await self._differs(kind):
            news = await self._read(kind)
            self._metrics.missed.labels(kind.plural).inc(news)
            if news:
                logger.info("comparing found %d %s that no watch had told of", news, kind.plural)

    async def _differs(self, kind: Kind) -> bool:
        for namespace in self._namespaces or ("",):
            listed = await self._list(kind, namespace, metadata=True)
            if listed is None:
                continue
            items, version = listed
            store = self._cluster.store(kind)
            for item in items:
                metadata = item["metadata"]
                known = store.get(metadata["namespace"], metadata["name"])
                if known is None or known.version < version_of(metadata):
                    return True
            present = {item["metadata"]["uid"] for item in items}
            if self._cluster.missing(kind, present, version, _only(namespace)):
                return True
        return False

    async def _read(self, kind: Kind) -> int:
        news = 0
        for namespace in self._namespaces or ("",):
            listed = await self._list(kind, namespace, metadata=False)
            if listed is not None:
                news += self._cluster.settle(kind, *listed, _only(namespace))
        return news

    async def _list(
        self, kind: Kind, namespace: str, *, metadata: bool
    ) -> tuple[list[dict[str, Any]], int] | None:
        """Return the objects and the version of the list, `None` where the kind is not served.

        Objects of a kind that is gone are gone too, and Kubernetes collects their Tools; but a kind
        that is away for a moment must not cost a single Tool.
        """
        path = path_to(kind.group, kind.version, kind.plural, namespace)
        try:
            return await self._api.list(path, kind.api_version, kind.name, metadata=metadata)
        except Refused as error:
            if error.status == 404:
                return None
            raise


def _only(namespace: str) -> tuple[str, ...]:
    return (namespace,) if namespace else ()
