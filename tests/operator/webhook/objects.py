"""The Secret and the configuration as several replicas find them: versions, conflicts, and time."""

import types
from collections.abc import Generator, Mapping
from datetime import UTC, datetime, timedelta

from cryptography import x509

from beckon_operator.webhook.cluster import StoredSecret, Trust, WebhookCluster, WriteConflict


@types.coroutine
def another_may_go_first() -> Generator[None]:
    yield


class Objects(WebhookCluster):
    """The two objects with the API server's rule: a write must name the version that it replaces."""

    def __init__(self, now: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.now = now
        self.secret = StoredSecret({})
        self.bundles: list[tuple[datetime, bytes]] = [(self.now, b"")]

    async def read_trust(self) -> Trust:
        await another_may_go_first()
        return Trust({"hook": self.bundles[-1][1]}, str(len(self.bundles)))

    async def read_secret(self) -> StoredSecret:
        await another_may_go_first()
        return self.secret

    async def write_secret(self, data: Mapping[str, bytes], before: StoredSecret) -> None:
        await another_may_go_first()
        if before.version != self.secret.version:
            raise WriteConflict
        self.secret = StoredSecret(dict(data), str(int(before.version or 0) + 1))

    async def publish_bundle(self, bundle: bytes, before: Trust) -> None:
        await another_may_go_first()
        if before.version != str(len(self.bundles)):
            raise WriteConflict
        self.bundles.append((self.now, bundle))

    def believed(self, settle: timedelta) -> list[list[x509.Certificate]]:
        """Return every bundle that an API server may go by, one that is slow to hear included."""
        since = self.now - settle
        ended = [end for end, _ in self.bundles[1:]] + [None]
        recent = [
            pem for (_, pem), end in zip(self.bundles, ended, strict=True) if end is None or end > since
        ]
        return [x509.load_pem_x509_certificates(pem) for pem in recent]
