"""Writes the statuses of the queued Brokers and Triggers.

Each is judged from the objects in memory, and written if its status differs from the stored one.
"""

import asyncio
import logging
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
from beckon_sources.api_types import ApiError, Refused, is_temporary, object_path

logger = logging.getLogger(__name__)

_AT_ONCE = 16  # writes
_AGAIN_SECONDS = 1.0  # after a write that failed
_STALE = frozenset((404, 409))  # answers to a write against another version: a watch brings the new one
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
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._write_next())

    async def _write_next(self) -> None:
        while True:
            item = await self._queue.take()
            if not self._leads():
                continue  # who begins to lead considers everything
            try:
                await self._bring_status(item)
            except ApiError as error:
                if isinstance(error, Refused) and error.status in _STALE:
                    logger.debug("%s %s/%s has changed meanwhile", *item)
                else:
                    self._metrics.failures.labels("status").inc()
                    level = logging.INFO if is_temporary(error) else logging.WARNING
                    logger.log(level, "the status of %s %s/%s was not written: %s", *item, error)
                self._queue.put_later(item, _AGAIN_SECONDS)
            except Exception:
                self._metrics.failures.labels("status").inc()
                logger.exception("the status of %s %s/%s was not written", *item)

    async def _bring_status(self, item: Dependent) -> None:
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
        stored = await self._api.patch(path, {"metadata": identity, "status": change})
        self._metrics.statuses.labels(kind.name).observe(time.monotonic() - started)
        self._judge.cluster.see_object(kind, stored)


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
