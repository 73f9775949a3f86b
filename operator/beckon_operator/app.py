"""The operator as a whole: its parts, their order at start and stop, and its HTTP.

Health, readiness and metrics are served, and the versions of the watched kinds are looked up first.
"""

import asyncio
import gc
import logging
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TypeVar

import stamina
from aiohttp import web

from beckon_operator.broker_class.assembly import BrokerClass
from beckon_operator.conditions.namespace_view import JudgingRules, UnwrittenTriggers
from beckon_operator.desired_state import DesiredState
from beckon_operator.judge import Judge
from beckon_operator.k8s_events import EventRecorder
from beckon_operator.lease import ClusterLease, Leadership
from beckon_operator.metrics import Metrics
from beckon_operator.objects import (
    BROKERS,
    EVENT_TYPE_VERSIONS,
    EVENT_TYPES,
    SERVICES,
    TOOLS,
    TRIGGERS,
    BrokerKey,
    Kind,
)
from beckon_operator.own_secrets import ensure_first_key, ensure_shim_keys
from beckon_operator.reply_path.writer import ReplyPath
from beckon_operator.reply_probes import ProbeTimes, ReplyProbes
from beckon_operator.serving import health_app, serve_app
from beckon_operator.settings import Settings
from beckon_operator.watching import Listing, watch_kinds
from beckon_operator.writer import Writer
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import ApiError


async def served_kinds(api: ApiClient) -> tuple[Kind, ...]:
    """Return the kinds served by the API server.

    EventTypes are there once, in the best version. Tools come first: their content helps to read EventTypes.
    Raises the errors of a request of `ApiClient`.
    """
    versions = [replace(EVENT_TYPES, version=version) for version in EVENT_TYPE_VERSIONS]
    event_types = [kind for kind in versions if await _is_served(api, kind)]
    others = [kind for kind in (TOOLS, BROKERS, SERVICES, TRIGGERS) if await _is_served(api, kind)]
    return (*others, *event_types[:1])


async def _is_served(api: ApiClient, kind: Kind) -> bool:
    document = await api.find(f"/apis/{kind.api_version}") or {}
    return any(one.get("name") == kind.plural for one in document.get("resources") or ())


logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_LEASE = "beckon-operator"  # the Lease by which one of several replicas leads
_COMPARE_SECONDS = 30.0  # between two comparisons with the cluster, which find what no watch reported
_PARALLEL_WRITES = 16  # of Tools
_LONGEST_WAIT = 5.0  # seconds between two attempts to start


class Operator:
    """Watches, judges, and writes while it leads."""

    def __init__(self, settings: Settings, api: ApiClient) -> None:
        # Two containers of one pod, one after the other, are two replicas.
        identity = f"{socket.gethostname()}_{secrets.token_hex(4)}"
        self._settings = settings
        self._api = api
        self._metrics = Metrics()
        self._desired = DesiredState()
        rules = JudgingRules(
            settings.replies_url,
            settings.reply_attribute,
            settings.cluster_domain,
            UnwrittenTriggers() if settings.reply_triggers else None,
        )
        self._judge = Judge(self._desired, rules, self._metrics)
        lease = ClusterLease(self._api, settings.namespace, _LEASE)
        self._leadership = Leadership(lease, identity)
        self._recorder = EventRecorder(self._api, self._metrics, identity)
        self._writer = Writer(
            self._api, self._judge.cluster, self._desired, self._leadership.leads, self._recorder
        )
        leads, cluster = self._leadership.leads, self._judge.cluster
        served = bool(settings.broker_ingress)
        self._class = BrokerClass(settings, api, cluster, leads, self._metrics) if served else None
        self._probes = ReplyProbes(
            settings.replies_url,
            ProbeTimes(settings.probe_seconds),
            self._brokers_of_tools,
            self._judge.set_replies_arrive,
            self._metrics,
        )
        self._replies = None
        if rules.unwritten is not None:
            rules.unwritten.changed = self._judge.judge_again
            self._replies = ReplyPath(
                api, cluster, rules, leads, recorder=self._recorder, metrics=self._metrics
            )
            self._replies.timeout_brokers = settings.timeout_brokers
            self._judge.add_observer(self._replies.set_uses)
        self._led = asyncio.Event()
        self._unready = "nothing has been listed yet"
        self._runner: web.AppRunner | None = None
        self._metrics.export_tools(self._desired.verdicts)
        self._metrics.leader.set_function(self._leadership.leads)

    async def run_operator(self, listener: socket.socket, started: Callable[[], None]) -> None:
        """Run until cancelled, or until the API server serves more kinds.

        New kinds need a new start. `started` is called once kopf has installed its signal handlers. Raises
        any error that the operator cannot recover from.
        """
        policy, limits = self._settings.origin_policy(self._settings.host), self._settings.connection_limits()
        health = health_app("beckon-operator", self._metrics.to_text, lambda: self._unready)
        self._runner = await serve_app(health, listener, policy, limits)
        kinds = await _retry_call(lambda: served_kinds(self._api))
        listing = Listing(
            self._api, self._judge.cluster, kinds, self._settings.watch_namespaces, self._metrics
        )
        await _retry_call(listing.read_all)
        self._judge.judge_all()
        # What is there now mostly stays: the collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        self._unready = ""
        names = ", ".join(f"{kind.plural} {kind.api_version}" for kind in kinds)
        logger.info("judged %d EventTypes; watching %s", sum(1 for _ in self._desired.verdicts()), names)
        watching = watch_kinds(self._judge.cluster, kinds, self._settings.watch_namespaces, started)
        async with asyncio.TaskGroup() as group:
            lasting = (
                self._judge.judge_changes(),
                self._writer.write_queued(_PARALLEL_WRITES, self._metrics),
                self._recorder.post_events(),
                self._leadership.take_part(self._start_leading),
                self._make_keys(),
                self._probes.probe_brokers(),
                *((_retry_call(self._class.serve_class),) if self._class else ()),
                *((self._replies.write_queued(),) if self._replies else ()),
            )
            ending = [group.create_task(one) for one in (watching, self._compare_regularly(listing, kinds))]
            tasks = [group.create_task(one) for one in lasting]
            await asyncio.wait(ending, return_when=asyncio.FIRST_COMPLETED)
            for task in (*ending, *tasks):
                task.cancel()

    async def stop_leading(self) -> None:
        """Stop writing, and let another replica lead at once."""
        self._unready = "leaving"
        await self._leadership.release_lease()

    async def close_connections(self) -> None:
        """Close every connection."""
        if self._runner is not None:
            await self._runner.cleanup()
        await self._api.close()

    async def _compare_regularly(self, listing: Listing, kinds: tuple[Kind, ...]) -> None:
        """Compare at an interval, and queue all differing Tools.

        Returns when the API server serves a kind that is not among these.
        """
        while True:
            await asyncio.sleep(_COMPARE_SECONDS)
            more = set(await _retry_call(lambda: served_kinds(self._api))) - set(kinds)
            if more:
                names = ", ".join(sorted(f"{kind.plural} {kind.api_version}" for kind in more))
                logger.info("the API server now serves %s: starting anew", names)
                return
            await listing.compare_all()
            self._queue_everything()

    async def _make_keys(self) -> None:
        """Create the missing keys of shim and agent, once this replica leads."""
        await self._led.wait()
        namespace = self._settings.namespace
        if shim := self._settings.keys_secret:
            await _retry_call(lambda: ensure_shim_keys(self._api, namespace, shim))
        if agent := self._settings.agent_keys_secret:
            await _retry_call(lambda: ensure_first_key(self._api, namespace, agent))

    def _brokers_of_tools(self) -> set[BrokerKey]:
        """Return the Brokers of Ready Tools."""
        return {
            (one.event_type.namespace, one.spec["broker"])
            for one in self._desired.verdicts()
            if one.ready.status == "True" and one.spec["dispatch"] == "broker"
        }

    def _start_leading(self) -> None:
        self._led.set()
        self._queue_everything()

    def _queue_everything(self) -> None:
        self._desired.queue_all()
        if self._class is not None:
            self._class.queue.put_all()
        if self._replies is not None:
            self._replies.put_all()


async def _retry_call(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return the result of an API server call; retry until it succeeds."""
    async for attempt in stamina.retry_context(
        on=ApiError,
        attempts=None,
        timeout=None,
        wait_initial=0.2,
        wait_max=_LONGEST_WAIT,
    ):
        with attempt:
            try:
                answer = await call()
            except ApiError as error:
                logger.warning("the API server does not do what is needed, trying again: %r", error)
                raise
    return answer
