"""Writes the statuses of the queued Brokers and Triggers.

Each is judged from the objects in memory, and written if its status differs from the stored one.
"""

import time
from collections.abc import Callable
from datetime import UTC, datetime

from beckon_operator.broker_class.change_queue import ChangeQueue
from beckon_operator.broker_class.judging import ClassJudge, Judgement
from beckon_operator.broker_class.references import Dependent
from beckon_operator.broker_class.statuses import changed_fields
from beckon_operator.metrics import Metrics
from beckon_operator.objects import BROKERS, TRIGGERS, Kind, ObservedObject
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Refused, object_path

_AT_ONCE = 16  # writes
_KINDS = {kind.name: kind for kind in (BROKERS, TRIGGERS)}


class ClassController:
    """Writes the statuses of Brokers of the class and their Triggers while this replica leads."""

    def __init__(
        self,
        api: ApiClient,
        queue: ChangeQueue,
        judge: ClassJudge,
        leads: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._api = api
        self._judge = judge
        self._leads = leads
        self._metrics = metrics
        self._queue = queue

    async def write_queued(self) -> None:
        """Judge and write the queued objects, until cancelled."""
        await self._queue.write_items(
            self._update_status,
            at_once=_AT_ONCE,
            leads=self._leads,
            what="the status of",
            failures=self._metrics.failures.labels("status"),
        )

    async def _update_status(self, item: Dependent) -> None:
        kind, namespace, name = item
        observed = self._judge.cluster.objects_of(_KINDS[kind]).find_object(namespace, name)
        judgement = await self._judge.judge(item, observed, _format_now())
        if judgement.again_after:
            self._queue.put_later(item, judgement.again_after)
        if observed is not None and judgement.status is not None:
            await self._write_status(_KINDS[kind], observed, judgement)

    async def _write_status(self, kind: Kind, observed: ObservedObject, judgement: Judgement) -> None:
        wanted = judgement.status or {}
        change = changed_fields(observed.resource.status, wanted)
        if not change:
            return
        path = f"{object_path(kind.api_version, kind.plural, observed.namespace, observed.name)}/status"
        started = time.monotonic()
        # Against the version that was judged, so that no newer status is overwritten.
        identity = {"uid": observed.uid, "resourceVersion": str(observed.version)}
        try:
            stored = await self._api.patch(path, {"metadata": identity, "status": change})
        except Refused as error:
            # The watch brings the new version, too, but maybe late.
            if error.status == 409 and (newer := await self._api.find(path.removesuffix("/status"))):
                self._judge.cluster.observe_object(kind, newer)
            raise
        self._metrics.statuses.labels(kind.name).observe(time.monotonic() - started)
        self._judge.cluster.observe_object(kind, stored)


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
