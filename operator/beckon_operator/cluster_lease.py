"""The Lease of the operator in the cluster."""

from typing import Any

from beckon_operator.lease import Conflict, LeaseRecord
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Refused, object_path

_API_VERSION, _PLURAL = "coordination.k8s.io/v1", "leases"


class ClusterLease:
    """A Lease in a namespace; an implementation of `lease.Leases`."""

    def __init__(self, api: ApiClient, namespace: str, name: str) -> None:
        self._api = api
        self._namespace, self._name = namespace, name

    async def read(self) -> LeaseRecord | None:
        """Return the Lease, or `None` if there is none."""
        try:
            return _read_record(await self._api.get(self._lease_path(self._name)))
        except Refused as error:
            if error.status == 404:
                return None
            raise

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        """Create the Lease; raise `Conflict` if it exists."""
        try:
            return _read_record(await self._api.create(self._lease_path(), self._to_document(record)))
        except Refused as error:
            raise _to_conflict(error) from error

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        """Write the Lease; raise `Conflict` if its version has changed."""
        try:
            return _read_record(
                await self._api.replace(self._lease_path(self._name), self._to_document(record))
            )
        except Refused as error:
            raise _to_conflict(error) from error

    def _lease_path(self, name: str = "") -> str:
        return object_path(_API_VERSION, _PLURAL, self._namespace, name)

    def _to_document(self, record: LeaseRecord) -> dict[str, Any]:
        metadata = {"name": self._name, "namespace": self._namespace}
        return {
            "apiVersion": _API_VERSION,
            "kind": "Lease",
            "metadata": metadata | ({"resourceVersion": record.version} if record.version else {}),
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": record.seconds,
                "acquireTime": record.acquired,
                "renewTime": record.renewed,
                "leaseTransitions": record.transitions,
            },
        }


def _read_record(document: dict[str, Any]) -> LeaseRecord:
    spec = document.get("spec") or {}
    return LeaseRecord(
        holder=str(spec.get("holderIdentity") or ""),
        seconds=int(spec.get("leaseDurationSeconds") or 0),
        acquired=str(spec.get("acquireTime") or ""),
        renewed=str(spec.get("renewTime") or ""),
        transitions=int(spec.get("leaseTransitions") or 0),
        version=str(document["metadata"]["resourceVersion"]),
    )


def _to_conflict(error: Refused) -> Exception:
    return Conflict(str(error)) if error.status == 409 else error
