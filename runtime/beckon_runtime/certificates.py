"""The certificate of a server with TLS, from files that may be renewed while it runs."""

import asyncio
import logging
import ssl
from pathlib import Path

_CHECK_SECONDS = 10.0

logger = logging.getLogger(__name__)


def server_context() -> ssl.SSLContext:
    """Return a context for TLS 1.2 and later, still without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class CertificateUnusable(Exception):
    """A certificate and its key cannot be served; the message names the files and the reason."""


class CertificateFolder:
    """The certificate `tls.crt` and its key `tls.key` in a folder, both in PEM.

    Kubernetes mounts a Secret of the type `kubernetes.io/tls` so, and changes the files with it.
    """

    def __init__(self, folder: Path) -> None:
        """Load the files. Raises `CertificateUnusable`."""
        self._chain, self._key = folder / "tls.crt", folder / "tls.key"
        self._loaded = self._read_version()
        self.context = self._load()
        """For new connections; open ones keep theirs."""

    async def follow_changes(self, *, seconds: float = _CHECK_SECONDS) -> None:
        """Load the files again whenever they have changed. The last usable ones stay in use."""
        problem = ""
        while True:
            await asyncio.sleep(seconds)
            try:
                version = self._read_version()
                if version == self._loaded:
                    continue
                self.context, self._loaded = self._load(), version
            except CertificateUnusable as error:
                if str(error) != problem:
                    logger.warning("the new certificate is not served: %s; trying again", error)
                problem = str(error)
            else:
                logger.info("a new certificate is served, from %s", self._chain)
                problem = ""

    def _read_version(self) -> tuple[tuple[int, int], ...]:
        """Return what changes with the files."""
        try:
            statuses = [path.stat() for path in (self._chain, self._key)]
        except OSError as error:
            raise CertificateUnusable(f"{error.filename}: {error.strerror}") from None
        return tuple((file.st_ino, file.st_mtime_ns) for file in statuses)

    def _load(self) -> ssl.SSLContext:
        context = server_context()
        try:
            context.load_cert_chain(self._chain, self._key)
        except ssl.SSLError as error:
            reason = (error.reason or "no certificate and key in PEM").lower().replace("_", " ")
            raise CertificateUnusable(f"{self._chain} and {self._key.name}: {reason}") from None
        except OSError as error:
            raise CertificateUnusable(f"{self._chain} and {self._key.name}: {error.strerror}") from None
        return context
