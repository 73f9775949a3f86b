"""Credentials of a kubeconfig, as the package `kubernetes` reads it.

Its loader merges several files, runs exec plugins, and refreshes OpenID Connect tokens. It costs 20 MB and a
quarter of a second, so nothing but a kubeconfig loads it.
"""

import asyncio
import os
import ssl
import time
from pathlib import Path

from kubernetes.aio import config
from kubernetes.aio.client import Configuration

from beckon_sources.api_types import ApiAccess, NotConfigured, first_line

_RELOAD_SECONDS = 10.0  # between two readings, each of which may run a plugin


class KubeconfigCredentials:
    """The current context of a kubeconfig, read again after a refusal."""

    def __init__(self, paths: str) -> None:
        """Take a path, or several with colons as in KUBECONFIG."""
        self._paths = paths
        self._access: ApiAccess | None = None
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    async def access(self) -> ApiAccess:
        """Return the access; read the kubeconfig the first time."""
        if self._access is None:
            self._access = await self._read()
        return self._access

    async def renew(self, refused: ApiAccess) -> ApiAccess | None:
        """Read the kubeconfig again, unless that was done a moment ago."""
        async with self._reading:
            if self._access is refused and time.monotonic() - self._read_at >= _RELOAD_SECONDS:
                self._access = await self._read()
            return self._access if self._access is not refused else None

    async def _read(self) -> ApiAccess:
        self._read_at = time.monotonic()
        if not _any_exists(self._paths):
            raise NotConfigured(f"there is no kubeconfig {self._paths}")
        configuration = Configuration()
        try:
            await config.load_kube_config(
                self._paths, client_configuration=configuration, persist_config=False
            )  # type: ignore[no-untyped-call]  # the package's
            return _access_of(configuration)
        except Exception as error:  # whatever is wrong with a kubeconfig, it is not ours to judge
            raise NotConfigured(f"the kubeconfig {self._paths} cannot be used: {first_line(error)}") from None


def _any_exists(paths: str) -> bool:
    return any(Path(path).expanduser().is_file() for path in paths.split(os.pathsep) if path)


def _access_of(configuration: Configuration) -> ApiAccess:
    tls = None
    if configuration.host.startswith("https:"):
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        if not configuration.verify_ssl:
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
    return ApiAccess(
        server=configuration.host,
        authorization=str(configuration.api_key.get("BearerToken") or "").strip(),
        tls=tls,
        server_name=configuration.tls_server_name,
        proxy=configuration.proxy,
    )
