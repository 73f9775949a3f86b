"""The parts of the class in this process, and what they follow at the API server."""

import asyncio
import logging
from collections.abc import Callable

from beckon_operator.broker_class import broker_pods, event_policies
from beckon_operator.broker_class.broker_pods import BrokerPods, BrokerSlices
from beckon_operator.broker_class.change_queue import ChangeQueue
from beckon_operator.broker_class.controller import ClassController
from beckon_operator.broker_class.event_policies import EventPolicies
from beckon_operator.broker_class.judging import ClassJudge, ClassRules, RelatedObjects
from beckon_operator.broker_class.references import References
from beckon_operator.cluster import Cluster
from beckon_operator.metrics import Metrics
from beckon_operator.settings import Settings
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact

logger = logging.getLogger(__name__)

_CURES = {403: "give the operator the roles of its manifests (deploy/310-roles-operator.yaml)"}


def class_rules(settings: Settings) -> ClassRules:
    """Return the names of the installation."""
    service, domain = settings.broker_ingress, settings.cluster_domain
    url = f"http://{service}.{settings.namespace}.svc.{domain}"
    return ClassRules(f"{settings.namespace}/{service}", url, settings.nats_secret, domain)


class BrokerClass:
    """Serves the class, once it is run."""

    def __init__(
        self,
        settings: Settings,
        api: ApiClient,
        cluster: Cluster,
        leads: Callable[[], bool],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._api = api
        self._pods_changed = asyncio.Event()
        self.queue = ChangeQueue(cluster)
        self._references = References(api, settings.watch_namespaces, self.queue.put)
        self._pods = BrokerPods(leads, self.queue.put_trigger, self.queue.put_brokers)
        self._policies = EventPolicies(self.queue.put_brokers)
        related = RelatedObjects(self._references, self._pods, self._policies)
        judge = ClassJudge(api, cluster, class_rules(settings), related)
        self._controller = ClassController(api, self.queue, judge, leads, metrics)

    async def serve_class(self) -> None:
        """Follow the cluster, judge and write, until cancelled."""
        settings, pods, policies = self._settings, Contact(_CURES), Contact(_CURES)
        slices = BrokerSlices(settings.broker_ingress, settings.broker_dispatcher, self._pods_changed.set)
        collection = Collection(broker_pods.API_VERSION, broker_pods.PLURAL, settings.namespace)
        followed = [Reflector(self._api, collection, slices, pods, required=False)]
        if await self._serves_policies():
            followed += [
                Reflector(
                    self._api,
                    Collection(event_policies.API_VERSION, event_policies.PLURAL, namespace),
                    self._policies,
                    policies,
                    required=False,
                )
                for namespace in settings.watch_namespaces or (None,)
            ]
        try:
            async with asyncio.TaskGroup() as group:
                for one in followed:
                    group.create_task(one.run())
                await pods.wait()
                # A Broker is not judged before its policies are known.
                if len(followed) > 1:
                    await policies.wait()
                group.create_task(self._pods.follow(slices, self._pods_changed))
                group.create_task(self._controller.write_queued())
        finally:
            await self._references.close()

    async def _serves_policies(self) -> bool:
        """Return True if the API server has EventPolicies: Knative before 1.15 has none."""
        document = await self._api.find(f"/apis/{event_policies.API_VERSION}") or {}
        return any(one.get("name") == event_policies.PLURAL for one in document.get("resources") or ())
