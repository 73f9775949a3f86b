"""The Secret and the MutatingWebhookConfiguration in the API server.

Every write names the version of the object that it was decided on, and raises `WriteConflict` if another
replica was faster.
"""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from beckon_sources.api_client import STRATEGIC_MERGE_PATCH, ApiClient
from beckon_sources.api_types import Refused, object_path, version_of

_LABELS = {"app.kubernetes.io/name": "beckon", "app.kubernetes.io/component": "webhook"}


class WriteConflict(Exception):
    """Another replica has written the object since it was read."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The caBundle of every webhook in the configuration, by name, and the object's version."""

    bundles: Mapping[str, bytes]
    version: str

    def holds(self, pem: bytes) -> bool:
        """Return True if the API server trusts a certificate, given as PEM."""
        return bool(self.bundles) and all(pem in bundle for bundle in self.bundles.values())

    def is_exactly(self, bundle: bytes) -> bool:
        """Return True if every webhook has exactly this bundle."""
        return bool(self.bundles) and set(self.bundles.values()) == {bundle}


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """The data of the Secret and its version. The version is empty if there is no Secret."""

    data: Mapping[str, bytes]
    version: str = ""


class WebhookCluster:
    """The two objects of one webhook."""

    def __init__(self, client: ApiClient, namespace: str, secret: str, configuration: str) -> None:
        self._client = client
        self._namespace, self._secret = namespace, secret
        self._configuration = object_path(
            "admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", name=configuration
        )

    async def read_trust(self) -> Trust | None:
        """Return the trusted bundles, or `None` without a configuration."""
        document = await self._client.find(self._configuration)
        if document is None:
            return None
        bundles = {
            str(one["name"]): base64.b64decode(one["clientConfig"].get("caBundle") or "")
            for one in document.get("webhooks") or ()
        }
        return Trust(bundles, version_of(document))

    async def read_secret(self) -> StoredSecret:
        """Return the Secret."""
        secret = await self._client.find(object_path("v1", "secrets", self._namespace, self._secret))
        if secret is None:
            return StoredSecret({})
        data = {name: base64.b64decode(value) for name, value in (secret.get("data") or {}).items()}
        return StoredSecret(data, version_of(secret))

    async def write_secret(self, data: Mapping[str, bytes], before: StoredSecret) -> None:
        """Write the data of the Secret; raise `WriteConflict` if it changed."""
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        async with _raising_conflicts():
            if not before.version:
                metadata = {"name": self._secret, "namespace": self._namespace, "labels": _LABELS}
                secret = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
                path = object_path("v1", "secrets", self._namespace)
                await self._client.create(path, {**secret, "data": encoded})
                return
            # A merge patch keeps what others have put on the object; null takes a key away.
            gone = dict.fromkeys(before.data.keys() - data.keys())
            patch = {"metadata": {"resourceVersion": before.version}, "data": {**gone, **encoded}}
            await self._client.patch(object_path("v1", "secrets", self._namespace, self._secret), patch)

    async def publish_bundle(self, bundle: bytes, before: Trust) -> None:
        """Make the API server trust a bundle.

        Raises `WriteConflict` if the configuration has changed since `before` was read.
        """
        encoded = base64.b64encode(bundle).decode()
        webhooks = [{"name": name, "clientConfig": {"caBundle": encoded}} for name in before.bundles]
        patch = {"metadata": {"resourceVersion": before.version}, "webhooks": webhooks}
        async with _raising_conflicts():
            # A strategic patch, which merges the list of webhooks by their names.
            await self._client.patch(self._configuration, patch, STRATEGIC_MERGE_PATCH)


@asynccontextmanager
async def _raising_conflicts() -> AsyncIterator[None]:
    try:
        yield
    except Refused as error:
        if error.status == 409:
            raise WriteConflict from error
        raise
