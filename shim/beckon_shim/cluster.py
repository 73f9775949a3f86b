"""The API server: the Brokers are followed in it, and it issues the tokens that Brokers ask for.

Imported only where `BECKON_SHIM_BROKERS=cluster`: its client costs 25 MB and a third of a second.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass

import stamina
from lightkube import AsyncClient
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ServiceAccountToken

from beckon_shim.bearers import Issued, NoToken
from beckon_shim.brokers import BrokerTable

_BROKER = create_namespaced_resource("eventing.knative.dev", "v1", "Broker", "brokers")
_PAGE = 500
# A watch is ended and the list read anew: so nothing that was missed, and no dead connection, lasts longer.
_WATCH_SECONDS = 120.0
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 10.0
_TOKEN_SECONDS = 3600

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    """The service account that the shim runs as."""

    namespace: str
    name: str


class Cluster:
    """What the shim knows of its cluster."""

    def __init__(self, client: AsyncClient, namespaces: Sequence[str], account: Account | None) -> None:
        self.brokers = BrokerTable(namespaces)
        self._client = client
        self._account = account

    async def follow(self) -> None:
        """Keep the Brokers up to date until cancelled; while the API server is away nothing is forgotten."""
        async with asyncio.TaskGroup() as group:
            for scope in self.brokers.scopes:
                group.create_task(self._follow(scope))

    async def issue(self, audience: str) -> Issued:
        """Return a new token of the shim's account for this audience; raise `NoToken`."""
        if self._account is None:
            raise NoToken(
                "the account of this shim is not known; set BECKON_SHIM_SERVICE_ACCOUNT and "
                "BECKON_SHIM_POD_NAMESPACE from the downward API"
            )
        spec = TokenRequestSpec(audiences=[audience], expirationSeconds=_TOKEN_SECONDS)
        wanted = ServiceAccountToken(spec=spec, metadata=ObjectMeta())  # lightkube asks for both
        try:
            answer = await self._client.create(wanted, self._account.name, namespace=self._account.namespace)
        except Exception as error:  # whatever it is, the call that waits for the token must be told
            account = f"{self._account.namespace}/{self._account.name}"
            raise NoToken(f"the API server gave the service account {account} none: {_told(error)}") from None
        if answer.status is None or not answer.status.token:
            raise NoToken("the API server answered a TokenRequest without a token")
        # Its own clock need not agree with ours, so the token's life counts and not its end.
        granted = answer.spec.expirationSeconds if answer.spec is not None else None
        return Issued(answer.status.token.encode(), float(granted or _TOKEN_SECONDS))

    async def close(self) -> None:
        """Close the connections to the API server."""
        await self._client.aclose()

    async def _follow(self, scope: str) -> None:
        while True:
            async for attempt in stamina.retry_context(
                on=Exception, attempts=None, timeout=None, wait_initial=_FIRST_WAIT, wait_max=_LONGEST_WAIT
            ):
                with attempt:
                    await self._list_and_watch(scope)

    async def _list_and_watch(self, scope: str) -> None:
        """Read the whole list, then its changes for a while; raise what ended it early."""
        try:
            listed = self._client.list(_BROKER, namespace=scope, chunk_size=_PAGE)
            self.brokers.replace(scope, [broker async for broker in listed])
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_WATCH_SECONDS):
                    await self._watch(scope, listed.resourceVersion)
        except Exception as error:
            where = "all namespaces" if scope == "*" else f"namespace {scope}"
            reason = f"the Brokers of {where} cannot be followed: {_told(error)}"
            logger.warning("%s; what was known of them stays in force", reason)
            self.brokers.failed(scope, reason)
            raise

    async def _watch(self, scope: str, version: str) -> None:
        changes = self._client.watch(_BROKER, namespace=scope, resource_version=version)
        async for verb, broker in changes:
            if verb == "DELETED":
                self.brokers.remove(broker)
            elif verb in ("ADDED", "MODIFIED"):
                self.brokers.put(broker)


def connect() -> AsyncClient:
    """Return a client of the cluster that this process runs in, or that the current kube context names.

    Raises `ValueError` that says what to set.
    """
    try:
        return AsyncClient()
    except Exception as error:  # whatever is wrong with a kubeconfig, it is not ours to judge
        raise ValueError(
            f"there is no way to the API server: {_told(error)}; run in a Pod or set KUBECONFIG"
        ) from None


def _told(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
