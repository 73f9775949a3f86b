"""The API server as the source of Brokers and their tokens.

Imported only with `BECKON_SHIM_BROKERS=cluster`, since its client costs memory and time.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from beckon_shim.bearers import IssuedToken, NoToken
from beckon_shim.brokers import BrokerTable
from beckon_sources.api_client import ApiClient
from beckon_sources.api_types import Collection, Refused, Unreachable
from beckon_sources.reflector import Reflector
from beckon_sources.watch_status import Contact

_API_VERSION = "eventing.knative.dev/v1"
_ROLE = "give the service account the role beckon-shim in that namespace"
_CURES = {401: _ROLE, 403: _ROLE, 404: "is Knative Eventing installed?"}
_TOKEN_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Account:
    """The service account of the shim."""

    namespace: str
    name: str


class Cluster:
    """The Brokers of these namespaces, or of all, and tokens for them."""

    def __init__(self, server: ApiClient, namespaces: Sequence[str], account: Account | None) -> None:
        contact = Contact(_CURES)
        self.brokers = BrokerTable(namespaces, contact)
        self._server = server
        self._account = account
        self._reflectors = [
            Reflector(server, Collection(_API_VERSION, "brokers", namespace), self.brokers, contact)
            for namespace in (namespaces or (None,))
        ]

    async def follow(self) -> None:
        """Keep the Brokers up to date until cancelled. While the API server is away, nothing is forgotten."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(reflector.run())

    async def issue(self, audience: str) -> IssuedToken:
        """Return a new token of the shim's account for this audience; raise `NoToken`."""
        if self._account is None:
            raise NoToken(
                "the account of this shim is not known; set BECKON_SHIM_SERVICE_ACCOUNT and "
                "BECKON_POD_NAMESPACE from the downward API"
            )
        account = self._account
        path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
        wanted = {"audiences": [audience], "expirationSeconds": _TOKEN_SECONDS}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}
        try:
            answer = await self._server.create(path, request)
        except (Refused, Unreachable) as error:
            name = f"{account.namespace}/{account.name}"
            raise NoToken(f"the API server gave the service account {name} none: {error}") from None
        token = (answer.get("status") or {}).get("token")
        if not token:
            raise NoToken("the API server answered a TokenRequest without a token")
        # Its own clock need not agree with ours, so the token's life counts and not its end.
        granted = (answer.get("spec") or {}).get("expirationSeconds")
        return IssuedToken(str(token).encode(), float(granted or _TOKEN_SECONDS))

    async def close(self) -> None:
        """Close the connections to the API server."""
        await self._server.close()
