"""EventTypes from folders of manifests, followed as they change: the adapter on a laptop."""

from pathlib import Path
from urllib.parse import urlsplit

from beckon_adapter.declaration import RuleRegistry
from beckon_contract.knative.addresses import CLUSTER_DOMAIN, published_address
from beckon_contract.knative.eventtypes import is_event_type
from beckon_contract.kubernetes_objects import Resource
from beckon_runtime.egress import AllowedHost, AllowedHosts
from beckon_sources.folders import Follower, ManifestFolders


class FolderSource:
    """Reads folders into a registry.

    Services in the folders that have an address run on this machine. The same person owns both, so rules
    may call them by their names in a cluster.
    """

    def __init__(self, folders: tuple[Path, ...], registry: RuleRegistry, allowed: AllowedHosts) -> None:
        self._follower = Follower(folders, self._read_changed, self._replace_all)
        self._folders = ManifestFolders(folders)
        self._registry = registry
        self._allowed = allowed
        self._read = False

    @property
    def ready(self) -> bool:
        """True if everything has been read once."""
        return self._read

    async def follow(self) -> None:
        """Read everything, and follow every change until cancelled."""
        await self.catch_up()
        self._read = True
        await self._follower.run()

    async def catch_up(self) -> None:
        """Read the changes of the folders. A call may come before the adapter notices its EventType."""
        await self._follower.refresh()

    async def close(self) -> None:
        """Do nothing: no files stay open."""

    def _read_changed(self) -> tuple[Resource, ...] | None:
        return self._folders.resources if self._folders.refresh() else None

    def _replace_all(self, resources: tuple[Resource, ...]) -> None:
        self._allowed.services = tuple(filter(None, map(_running_host, resources)))
        self._registry.replace(resource for resource in resources if is_event_type(resource))


def _running_host(resource: Resource) -> AllowedHost | None:
    """Return the host entry of a Service on this machine.

    It maps the Service's name in a cluster to its local address. Returns `None` for anything else.
    """
    if resource.kind != "Service":
        return None
    try:
        address = published_address(resource.status)
        name = f"http://{resource.name}.{resource.namespace}.svc.{CLUSTER_DOMAIN}"
        return AllowedHost(host=name, connect=urlsplit(address.url).netloc) if address else None
    except ValueError:  # an address of another kind, such as https or a name
        return None
