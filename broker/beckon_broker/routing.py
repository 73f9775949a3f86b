"""What the manifests say of routing, and how it comes into force."""

import logging

from beckon_broker.admission import Admission, NotReady
from beckon_broker.dispatcher import Dispatcher
from beckon_broker.topology import Topology, build_topology
from beckon_manifests.folders import ManifestFolders

logger = logging.getLogger(__name__)


class Routing:
    """Makes a topology of what the folders say, and hands it to the dispatcher."""

    def __init__(self, manifests: ManifestFolders, dispatcher: Dispatcher, base_url: str) -> None:
        self._manifests = manifests
        self._dispatcher = dispatcher
        self._base_url = base_url
        self._admission = Admission()
        self._said: frozenset[NotReady] = frozenset()

    def read(self) -> Topology | None:
        """Return the topology if the folders have changed; blocks."""
        if not self._manifests.refresh():
            return None
        return build_topology(self._admission.review(self._manifests.resources), self._base_url)

    def apply(self, topology: Topology) -> None:
        """Put a topology in force, and say once of each object that is not ready why."""
        self._dispatcher.apply(topology)
        for note in topology.not_ready:
            if note not in self._said:
                logger.warning("%s is not ready: %s: %s", note.key, note.reason, note.message)
        self._said = frozenset(topology.not_ready)
        ready = len(topology.subscriptions())
        logger.info("brokers: %d, ready triggers: %d", len(topology.brokers), ready)
