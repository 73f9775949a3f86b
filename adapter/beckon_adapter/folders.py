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
    may call them by their names in a cluster. A call to a Service without an address is to be repeated: it
    may still start, or its address was not there at the last reading.
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
        services = [resource for resource in resources if resource.kind == "Service"]
        hosts = [host for each in services if (host := _running_host(each) or _named_host(each))]
        self._allowed.services = tuple(host for host in hosts if host.connect)
        self._allowed.starting = tuple(host for host in hosts if not host.connect)
        self._registry.replace(resource for resource in resources if is_event_type(resource))


def _running_host(service: Resource) -> AllowedHost | None:
    """Return the host entry of a Service on this machine, which maps its name to its local address.

    Returns `None` without an address, or with one of another kind, such as https or a name.
    """
    try:
        address = published_address(service.status)
    except ValueError:
        return None
    return _named_host(service, urlsplit(address.url).netloc) if address else None


def _named_host(service: Resource, connect: str = "") -> AllowedHost | None:
    """Return a host entry with a Service's name in a cluster, `None` for a name that DNS does not know."""
    try:
        name = f"http://{service.name}.{service.namespace}.svc.{CLUSTER_DOMAIN}"
        return AllowedHost(host=name, connect=connect)
    except ValueError:
        return None
