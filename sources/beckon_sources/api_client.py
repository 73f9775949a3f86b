"""The client of the API server: lists, watches, reads and writes over aiohttp; the credentials of a Pod."""

import json
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from beckon_sources.api_types import (
    PAGE_SIZE,
    ApiAccess,
    Change,
    Collection,
    Credentials,
    Document,
    NotConfigured,
    Page,
    Query,
    Refused,
    Unreachable,
    first_line,
    page_query,
    read_change,
    read_document,
    read_page,
    refusal,
    watch_query,
)

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


logger = logging.getLogger(__name__)

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_JSON = "application/json"
_METADATA = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_CONNECT = 10.0  # seconds for a connection
_ANSWER = 60.0  # seconds for a whole answer that is no watch
_SILENCE = 90.0  # seconds; the API server sends a bookmark about once a minute
_WATCH = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_SILENCE)
_FAILURES = (aiohttp.ClientError, NotConfigured, OSError)  # the last two where credentials cannot be read


@dataclass(frozen=True, slots=True)
class _Call:
    method: str
    path: str
    query: Query = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


class ApiClient:
    """Requests to one API server.

    Raises `Unreachable` and `Refused`, and nothing else. It belongs to the event loop of its first request.
    """

    def __init__(self, credentials: Credentials, user_agent: str, *, answer_seconds: float = _ANSWER) -> None:
        """Take credentials, the name for the server's log, and the longest silence in an answer.

        The API server also takes the name for the manager of the fields that are written.
        """
        self._credentials = credentials
        self._headers = {"User-Agent": user_agent, "Accept": _JSON}
        self._timeout = aiohttp.ClientTimeout(total=_ANSWER, sock_connect=_CONNECT, sock_read=answer_seconds)
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str) -> dict[str, Any]:
        """Return the object at a path."""
        return await self._request(_Call("GET", path))

    async def find(self, path: str) -> dict[str, Any] | None:
        """Return the object at a path, or `None` if there is none."""
        try:
            return await self.get(path)
        except Refused as error:
            if error.status != 404:
                raise
            return None

    async def create(self, path: str, document: Document) -> dict[str, Any]:
        """Create an object in the collection at a path; return it as it was stored."""
        return await self._request(_write("POST", path, document))

    async def replace(self, path: str, document: Document) -> dict[str, Any]:
        """Replace the object at a path, unless its version has changed.

        The document names the expected version.
        """
        return await self._request(_write("PUT", path, document))

    async def patch(self, path: str, change: Document, patch_type: str = MERGE_PATCH) -> dict[str, Any]:
        """Patch the object at a path; return it as it was stored."""
        return await self._request(_write("PATCH", path, change, patch_type))

    async def delete(self, path: str, uid: str, version: str) -> None:
        """Delete the object at a path, if uid and version still match."""
        conditions = {"uid": uid, "resourceVersion": version}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        await self._request(_write("DELETE", path, options))

    async def list_page(
        self, collection: Collection, rest: str = "", *, limit: int = PAGE_SIZE, metadata_only: bool = False
    ) -> Page:
        """Return the first page of a list, or the page at `rest`.

        `rest` is the `continue` token of the page before.
        """
        headers = {"Accept": _METADATA} if metadata_only else {}
        call = _Call("GET", collection.path, page_query(rest, limit), headers)
        return read_page(await self._request(call))

    @asynccontextmanager
    async def watch(
        self, collection: Collection, version: str, seconds: int
    ) -> AsyncIterator[AsyncIterator[Change]]:
        """Watch the changes after a version, for `seconds` at most.

        Ends early after a long silence, since the connection may be dead.
        """
        call = _Call("GET", collection.path, watch_query(version, seconds))
        response = await self._send(call, _WATCH)
        try:
            if response.status != 200:
                raise refusal(response.status, await _read_body(response))
            yield _read_changes(response)
        finally:
            response.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _request(self, call: _Call) -> dict[str, Any]:
        response = await self._send(call, self._timeout)
        try:
            content = await _read_body(response)
        finally:
            response.release()
        if not 200 <= response.status < 300:
            raise refusal(response.status, content)
        return read_document(content)

    async def _send(self, call: _Call, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send a request; after a 401 once more, if there are other credentials."""
        try:
            access = await self._credentials.access()
            response = await self._send_with(access, call, timeout)
            if response.status == 401 and (newer := await self._credentials.renew(access)):
                response.close()
                response = await self._send_with(newer, call, timeout)
        except _FAILURES as error:
            raise Unreachable(first_line(error)) from None
        return response

    async def _send_with(
        self, access: ApiAccess, call: _Call, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        if self._session is None:
            # One watch a collection and namespace lasts for minutes, so the connections have no limit.
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                trust_env=True,
            )
        headers = dict(call.headers)
        if access.authorization:
            headers["Authorization"] = access.authorization
        return await self._session.request(
            call.method,
            access.server + call.path,
            params=call.query,
            headers=headers,
            data=call.content,
            timeout=timeout,
            allow_redirects=False,
            ssl=access.tls or True,
            server_hostname=access.server_name,
            proxy=access.proxy,
        )


async def connect(
    user_agent: str, kubeconfig: str | None = None, *, answer_seconds: float = _ANSWER
) -> ApiClient:
    """Return a client for the cluster of this Pod or of a kubeconfig.

    `find_credentials` says which. Nothing is sent yet. Raises `NotConfigured`, with the setting to change.
    """
    return ApiClient(await find_credentials(kubeconfig), user_agent, answer_seconds=answer_seconds)


def _write(method: str, path: str, document: Document, content_type: str = _JSON) -> _Call:
    # Not by orjson: a schema may hold a number of more than 64 bits.
    return _Call(method, path, (), {"Content-Type": content_type}, json.dumps(document).encode())


async def _read_changes(response: aiohttp.ClientResponse) -> AsyncIterator[Change]:
    """Yield the changes of a watch, one a line, however long the lines are."""
    line = bytearray()
    try:
        async for chunk in response.content.iter_any():
            first, *rest = chunk.split(b"\n")
            line += first
            for part in rest:
                yield read_change(bytes(line))
                line = bytearray(part)
    except TimeoutError:
        logger.debug("nothing for %g s; watching anew", _SILENCE)
    except aiohttp.ClientError as error:
        raise Unreachable(first_line(error)) from None


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(first_line(error)) from None
