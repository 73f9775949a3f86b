"""The credentials for the API server: of this Pod, or of a kubeconfig."""

import os
import ssl
import time
from collections.abc import Mapping
from pathlib import Path

from beckon_sources.api_types import ApiAccess, Credentials, NotConfigured, first_line

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_SECONDS = 60.0  # the kubelet replaces the token after 80 % of its life, which is ten minutes at least
_INSTALL = "which `make setup` installs, and `pip install beckon-sources[kubeconfig]`"
_CURE = "run in a Pod, or set KUBECONFIG to a kubeconfig"


class PodCredentials:
    """The service account of the Pod, as the kubelet mounts and replaces it."""

    def __init__(self, folder: Path = _ACCOUNT, environ: Mapping[str, str] = os.environ) -> None:
        """Read it for the first time; raise `NotConfigured` if this is no Pod."""
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise NotConfigured("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
        self._server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
        self._folder = folder
        self._authority = ""
        try:
            self._access = self._read(ApiAccess(""))
        except OSError as error:
            raise NotConfigured(f"the service account of the Pod cannot be read: {error}") from None

    async def access(self) -> ApiAccess:
        """Return the access; read the files again once a minute."""
        if time.monotonic() - self._read_at >= _TOKEN_SECONDS:
            self._access = self._read(self._access)
        return self._access

    async def renew(self, refused: ApiAccess) -> ApiAccess | None:
        """Read the files again; return the access if it differs."""
        self._access = self._read(self._access)
        return self._access if self._access != refused else None

    def _read(self, before: ApiAccess) -> ApiAccess:
        token = _read_text(self._folder / "token")
        authority = _read_text(self._folder / "ca.crt")
        tls = before.tls
        if tls is None or authority != self._authority:
            tls = ssl.create_default_context(cadata=authority)
            self._authority = authority
        self._read_at = time.monotonic()
        return ApiAccess(self._server, f"Bearer {token}", tls)


async def find_credentials(kubeconfig: str | None = None) -> Credentials:
    """Return credentials: of a kubeconfig, or of this Pod; raise `NotConfigured`.

    For `""` only the Pod counts. For `None` it is the Pod, or else the kubeconfig that `kubectl` would use.
    """
    try:
        if kubeconfig:
            return await _read_kubeconfig(kubeconfig)
        try:
            return PodCredentials()
        except NotConfigured:
            if kubeconfig == "":
                raise
        return await _read_kubeconfig(os.environ.get("KUBECONFIG") or "~/.kube/config")
    except NotConfigured as error:
        raise NotConfigured(f"no access to an API server: {error}; {_CURE}") from None


async def _read_kubeconfig(paths: str) -> Credentials:
    try:
        # A Pod needs no kubeconfig, and its image need not hold the package `kubernetes`.
        from beckon_sources.kubeconfig import KubeconfigCredentials  # noqa: PLC0415  # see above
    except ImportError as error:
        package = str(error.name).partition(".")[0]
        raise NotConfigured(f"a kubeconfig takes the Python package {package}, {_INSTALL}") from None
    credentials = KubeconfigCredentials(paths)
    try:
        await credentials.access()
    except OSError as error:
        raise NotConfigured(first_line(error)) from None
    return credentials


def _read_text(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise OSError(f"{path} is empty")
    return text
