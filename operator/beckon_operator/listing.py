"""Lists of watched objects, and comparisons for changes missed by watches.

A watch that has to start again lists the present objects, and does not report those deleted meanwhile.
"""

import asyncio
import logging
from collections.abc import AsyncIterator

from beckon_operator.cluster import Cluster
from beckon_operator.kinds import Kind
from beckon_operator.metrics import Metrics
from beckon_operator.observed import parse_version
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, Collection, Page, Refused

logger = logging.getLogger(__name__)

_PAGE = 500  # objects of a list that are read at once
# Seconds in which a watch may still tell of what a list already has.
_LAG = 2.0


class Listing:
    """Lists every kind in the watched namespaces (none: all of them) into the cluster."""

    def __init__(
        self,
        api: ApiClient,
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
        """Read every object of every kind.

        Raises the errors of a request of `ApiClient`.
        """
        for kind in self._kinds:
            await self._read_kind(kind)

    async def compare_all(self) -> None:
        """Compare the known versions with the cluster; read differing kinds again."""
        for kind in self._kinds:
            try:
                await self._compare_kind(kind)
            except ApiError as error:
                logger.warning("%s could not be compared: %r", kind.plural, error)
                self._metrics.failures.labels("compare").inc()

    async def _compare_kind(self, kind: Kind) -> None:
        if not await self._differs_from_cluster(kind):
            return
        await asyncio.sleep(_LAG)
        if await self._differs_from_cluster(kind):
            news = await self._read_kind(kind)
            self._metrics.missed.labels(kind.plural).inc(news)
            logger.info("comparing found %d %s that no watch had told of", news, kind.plural)

    async def _differs_from_cluster(self, kind: Kind) -> bool:
        for namespace in self._namespaces or ("",):
            present: set[str] = set()
            version = 0
            async for page in self._list_pages(kind, namespace, metadata=True):
                version = parse_version(page.version)
                present.update(item["metadata"]["uid"] for item in page.items)
                if not all(self._cluster.knows_version(kind, item["metadata"]) for item in page.items):
                    return True
            if self._cluster.missing_from(kind, present, version, namespace):
                return True
        return False

    async def _read_kind(self, kind: Kind) -> int:
        """Read every object of a kind; return the number of changes."""
        news = 0
        for namespace in self._namespaces or ("",):
            present = set()
            version = 0
            async for page in self._list_pages(kind, namespace, metadata=False):
                version = parse_version(page.version)
                for item in page.items:
                    present.add(item["metadata"]["uid"])
                    news += not self._cluster.knows_version(kind, item["metadata"])
                    self._cluster.see_object(
                        kind, {**item, "apiVersion": kind.api_version, "kind": kind.name}
                    )
            for gone in self._cluster.missing_from(kind, present, version, namespace):
                news += 1
                self._cluster.lose_object(kind, gone)
        return news

    async def _list_pages(self, kind: Kind, namespace: str, *, metadata: bool) -> AsyncIterator[Page]:
        """Yield the pages of a list; none if the kind is not served.

        If a kind is removed, its objects are gone too, and Kubernetes garbage-collects their Tools. But a
        kind that is missing for a moment must not cost a single Tool: version 0 of the empty list is older
        than any object.
        """
        collection = Collection(kind.api_version, kind.plural, namespace or None)
        try:
            rest = ""
            while True:
                page = await self._api.list_page(collection, rest, limit=_PAGE, metadata_only=metadata)
                yield page
                rest = page.rest
                if not rest:
                    return
        except Refused as error:
            if error.status != 404:
                raise
