"""Lists and watches: the two sources of the cluster's state."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any

import kopf

from beckon_operator.cluster import Cluster
from beckon_operator.metrics import Metrics
from beckon_operator.objects import Kind, parse_version
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError, Collection, Page, Refused

logger = logging.getLogger(__name__)

_PAGE = 500  # objects of a list that are read at once
# Seconds by which the report of a watch may follow a list.
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
        """Read every object of every kind. Raises the errors of a request of `ApiClient`."""
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
            logger.info("comparing found %d changes of %s that no watch had reported", news, kind.plural)

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
                    self._cluster.observe_object(
                        kind, {**item, "apiVersion": kind.api_version, "kind": kind.name}
                    )
            for gone in self._cluster.missing_from(kind, present, version, namespace):
                news += 1
                self._cluster.observe_deletion(kind, gone)
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


# Not kopf's: it takes its own finalizer off the objects it watches, also where another operator put it.
_FINALIZER = "beckon.dev/no-finalizer"


class _NoMemory(kopf.DiffBaseStorage):
    """A kopf storage without memory of objects. Otherwise kopf copies every object to compare it."""

    def build(
        self, *, body: kopf.Body, extra_fields: Iterable[kopf.FieldSpec] | None = None
    ) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Write nothing."""


async def watch_kinds(
    cluster: Cluster, kinds: tuple[Kind, ...], namespaces: tuple[str, ...], started: Callable[[], None]
) -> None:
    """Watch the kinds in these namespaces until cancelled.

    Without namespaces all are watched. Raises if kopf gives up. kopf installs its own handlers of SIGTERM and
    SIGINT before it calls `started`, which may replace them.
    """
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(_log_in)
    for kind in kinds:
        handler = kopf.on.event(kind.group, kind.version, kind.plural, registry=registry)
        handler(_make_handler(cluster, kind))
    others = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=_kopf_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    started()
    await kopf.run_tasks(tasks, ignored=others)


def _kopf_settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.persistence.finalizer = _FINALIZER
    settings.persistence.diffbase_storage = _NoMemory()
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.watching.chunk_size = 500
    # Otherwise kopf lists namespaces and CRDs, for which the operator has no rights.
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    settings.queueing.idle_timeout = 1.0  # a task for each object that changed, no longer than needed
    return settings


def _make_handler(cluster: Cluster, kind: Kind) -> Callable[..., Coroutine[Any, Any, None]]:
    async def follow(event: kopf.RawEvent, **_: object) -> None:
        document = event["object"]
        if event["type"] == "DELETED":
            cluster.observe_deletion(kind, document["metadata"])
        else:
            cluster.observe_object(kind, document)

    return follow


def _log_in(**arguments: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)
