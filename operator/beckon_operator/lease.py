"""Leader election by a Lease: one replica writes, another follows within seconds.

The rules are those of client-go (tools/leaderelection): a replica takes a Lease over only when the Lease has
not changed for its whole duration by the replica's own clock, so clocks need not agree; every change is made
against the version that was read; a leader that cannot renew stops leading before others may take over.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Refused, object_path

logger = logging.getLogger(__name__)


class Conflict(Exception):
    """Another replica changed the Lease since it was read."""


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The content of a Lease; an empty `holder` means released. Times are in ISO 8601 with microseconds."""

    holder: str
    seconds: int
    acquired: str
    renewed: str
    transitions: int = 0
    version: str = ""


class Leases(Protocol):
    """The storage of the Lease."""

    async def read(self) -> LeaseRecord | None:
        """Return the Lease, or `None` if there is none."""

    async def create(self, record: LeaseRecord) -> LeaseRecord:
        """Create the Lease; raise `Conflict` if it exists."""

    async def replace(self, record: LeaseRecord) -> LeaseRecord:
        """Write the Lease; raise `Conflict` if its version has changed."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The times of the election, in seconds.

    They are the duration of a Lease, the time after which a leader that cannot renew gives up, and the
    interval between attempts. A crashed leader is followed after `lasts + tries_every` at the latest.
    """

    lasts: int = 10
    gives_up_after: float = 7.0
    tries_every: float = 2.0


class Leadership:
    """One replica's part in the election."""

    def __init__(
        self,
        leases: Leases,
        identity: str,
        timing: Timing | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._leases = leases
        self._identity = identity
        self._timing = timing or Timing()
        self._clock = clock
        self._seen: LeaseRecord | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None
        self._left = False

    def leads(self) -> bool:
        """Return True if this replica may write now.

        Ask before each write, because leadership expires by itself.
        """
        renewed = self._renewed_at
        return renewed is not None and self._clock() - renewed < self._timing.gives_up_after

    async def take_part(self, gained: Callable[[], None]) -> None:
        """Take part until cancelled; call `gained` whenever this replica begins to lead."""
        led = False
        while True:
            try:
                async with asyncio.timeout(self._timing.gives_up_after / 2):
                    await self.renew_or_take()
            except Exception as error:  # whatever failed, the next attempt may not
                logger.warning("the Lease could not be renewed or taken: %r", error)
            if self.leads() != led:
                led = self.leads()
                logger.info("%s %s", self._identity, "leads" if led else "leads no more")
                if led:
                    gained()
            await asyncio.sleep(self._timing.tries_every)

    async def renew_or_take(self) -> None:
        """Renew the Lease, or take it if it is free."""
        if self._left:
            return
        started = self._clock()
        lease = await self._leases.read()
        if lease is None:
            await self._write_lease(self._leases.create, self._own_record(None), started)
            return
        if lease != self._seen:
            self._seen, self._seen_at = lease, started
        expired = started - self._seen_at >= lease.seconds
        if lease.holder in {"", self._identity} or expired:
            await self._write_lease(self._leases.replace, self._own_record(lease), started)
        else:
            self._renewed_at = None

    async def release_lease(self) -> None:
        """Release the Lease for good; another replica can take it at once."""
        self._left = True
        lease = self._seen
        if not self.leads() or lease is None:
            return
        self._renewed_at = None
        now = _format_now()
        free = replace(lease, holder="", seconds=1, acquired=now, renewed=now)
        try:
            await self._leases.replace(free)
        except Exception as error:  # a Lease that is not let go expires
            logger.warning("the Lease could not be let go: %r", error)

    async def _write_lease(
        self, write: Callable[[LeaseRecord], Awaitable[LeaseRecord]], record: LeaseRecord, started: float
    ) -> None:
        """Write the Lease; the request's start counts as the renewal time.

        Other replicas see the renewal later than that.
        """
        try:
            self._seen = await write(record)
        except Conflict:
            # Another replica was faster. The last renewal decides if this one still leads.
            return
        self._seen_at = self._renewed_at = started

    def _own_record(self, lease: LeaseRecord | None) -> LeaseRecord:
        now = _format_now()
        if lease is None:
            return LeaseRecord(self._identity, self._timing.lasts, now, now)
        if lease.holder == self._identity:
            return replace(lease, seconds=self._timing.lasts, renewed=now)
        return LeaseRecord(self._identity, self._timing.lasts, now, now, lease.transitions + 1, lease.version)


def _format_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_API_VERSION, _PLURAL = "coordination.k8s.io/v1", "leases"


class ClusterLease:
    """A Lease in a namespace; an implementation of `lease.Leases`."""

    def __init__(self, api: ApiClient, namespace: str, name: str) -> None:
        self._api = api
        self._namespace, self._name = namespace, name

    async def read(self) -> LeaseRecord | None:
        """Return the Lease, or `None` if there is none."""
        document = await self._api.find(self._lease_path(self._name))
        return _read_record(document) if document is not None else None

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
