"""The watches, run by kopf: events update the `Cluster`, nothing is written.

kopf writes to the watched objects for every handler other than an `on.event` handler without a result. So
only such handlers are used.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import kopf

from beckon_operator.cluster import Cluster
from beckon_operator.kinds import Kind

# Not kopf's: it takes its own finalizer off the objects it watches, also where another operator put it.
_FINALIZER = "beckon.dev/no-finalizer"


class _NoMemory(kopf.DiffBaseStorage):
    """A kopf storage without memory of objects.

    Otherwise kopf copies every object to compare it.
    """

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
    # Else kopf lists namespaces and CRDs, which nobody needs a right to: what is served is compared.
    settings.scanning.disabled = True
    settings.process.ultimate_exiting_timeout = None
    settings.queueing.idle_timeout = 1.0  # a task for each object that changed, no longer than needed
    return settings


def _make_handler(cluster: Cluster, kind: Kind) -> Callable[..., Coroutine[Any, Any, None]]:
    async def follow(event: kopf.RawEvent, **_: object) -> None:
        document = event["object"]
        if event["type"] == "DELETED":
            cluster.lose_object(kind, document["metadata"])
        else:
            cluster.see_object(kind, document)

    return follow


def _log_in(**arguments: Any) -> kopf.ConnectionInfo | None:
    return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)
