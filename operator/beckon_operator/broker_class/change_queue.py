"""The queue of changed Brokers and Triggers of the class."""

from beckon_contract.knative.broker_class import is_of_class
from beckon_contract.knative.triggers import broker_of
from beckon_operator.broker_class.references import Dependent
from beckon_operator.cluster import Cluster
from beckon_operator.keyed_queue import KeyedQueue
from beckon_operator.objects import BROKERS, TRIGGERS, Kind, ObservedObject


class ChangeQueue(KeyedQueue[Dependent]):
    """Objects by kind, namespace and name.

    A Trigger is queued whatever its Broker's class is, and with each change of a Broker of the class.
    """

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self._by_broker: dict[tuple[str, str], set[str]] = {}
        cluster.add_observer(self._observe)

    def put_trigger(self, key: tuple[str, str]) -> None:
        """Queue a Trigger by its namespace and name."""
        self.put((TRIGGERS.name, *key))

    def put_brokers(self) -> None:
        """Queue every Broker of the class."""
        for one in list(self._cluster.objects_of(BROKERS)):
            if is_of_class(one.resource):
                self.put((BROKERS.name, one.namespace, one.name))

    def put_all(self) -> None:
        """Queue every Broker of the class, and every Trigger."""
        self.put_brokers()
        for one in list(self._cluster.objects_of(TRIGGERS)):
            self.put_trigger((one.namespace, one.name))

    def _observe(self, kind: Kind, old: ObservedObject | None, new: ObservedObject | None) -> None:
        changed = new or old
        if changed is None or kind.name not in (BROKERS.name, TRIGGERS.name):
            return
        key = changed.namespace, changed.name
        if kind.name == TRIGGERS.name:
            self._index(old, new)
            self.put_trigger(key)
        elif any(one is not None and is_of_class(one.resource) for one in (old, new)):
            self.put((BROKERS.name, *key))
            for name in self._by_broker.get(key, ()):
                self.put_trigger((changed.namespace, name))

    def _index(self, old: ObservedObject | None, new: ObservedObject | None) -> None:
        """Index a Trigger by its Broker."""
        if old is not None:
            key = old.namespace, broker_of(old.resource)
            names = self._by_broker.get(key, set())
            names.discard(old.name)
            if not names:
                self._by_broker.pop(key, None)
        if new is not None:
            self._by_broker.setdefault((new.namespace, broker_of(new.resource)), set()).add(new.name)
