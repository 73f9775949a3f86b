"""The Secret and the MutatingWebhookConfiguration in the API server.

Every write names the version of the object that it was decided on, and raises `WriteConflict` if another
replica was faster.
"""

import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from lightkube import ApiError, AsyncClient
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.admissionregistration_v1 import MutatingWebhookConfiguration
from lightkube.resources.core_v1 import Secret
from lightkube.types import PatchType

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
class Stored:
    """The data of the Secret and its version.

    The version is empty if there is no Secret.
    """

    data: Mapping[str, bytes]
    version: str = ""


class WebhookCluster:
    """The two objects of one webhook."""

    def __init__(self, client: AsyncClient, namespace: str, secret: str, configuration: str) -> None:
        self._client = client
        self._namespace, self._secret, self._configuration = namespace, secret, configuration

    async def trust(self) -> Trust | None:
        """Return the trusted bundles, or `None` without a configuration."""
        try:
            found = await self._client.get(MutatingWebhookConfiguration, self._configuration)
        except ApiError as error:
            if error.response.status_code == 404:
                return None
            raise
        bundles = {
            one.name: base64.b64decode(one.clientConfig.caBundle or "") for one in found.webhooks or ()
        }
        return Trust(bundles, _version(found.metadata))

    async def stored(self) -> Stored:
        """Return the Secret."""
        try:
            found = await self._client.get(Secret, self._secret, namespace=self._namespace)
        except ApiError as error:
            if error.response.status_code == 404:
                return Stored({})
            raise
        data = {name: base64.b64decode(value) for name, value in (found.data or {}).items()}
        return Stored(data, _version(found.metadata))

    async def store(self, data: Mapping[str, bytes], before: Stored) -> None:
        """Write the data of the Secret; raise `WriteConflict` if it changed."""
        encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
        async with _guarded():
            if not before.version:
                metadata = ObjectMeta(name=self._secret, namespace=self._namespace, labels=_LABELS)
                await self._client.create(Secret(metadata=metadata, type="Opaque", data=encoded))
                return
            # A merge patch keeps what others have put on the object; null takes a key away.
            gone = dict.fromkeys(before.data.keys() - data.keys())
            patch = {"metadata": {"resourceVersion": before.version}, "data": {**gone, **encoded}}
            await self._client.patch(
                Secret, self._secret, patch, namespace=self._namespace, patch_type=PatchType.MERGE
            )

    async def publish(self, bundle: bytes, before: Trust) -> None:
        """Make the API server trust a bundle.

        Raises `WriteConflict` if the configuration has changed since `before` was read.
        """
        encoded = base64.b64encode(bundle).decode()
        webhooks = [{"name": name, "clientConfig": {"caBundle": encoded}} for name in before.bundles]
        patch = {"metadata": {"resourceVersion": before.version}, "webhooks": webhooks}
        async with _guarded():
            await self._client.patch(MutatingWebhookConfiguration, self._configuration, patch)


@asynccontextmanager
async def _guarded() -> AsyncIterator[None]:
    try:
        yield
    except ApiError as error:
        if error.response.status_code == 409:
            raise WriteConflict from error
        raise


def _version(metadata: ObjectMeta | None) -> str:
    return (metadata.resourceVersion if metadata else None) or ""
