"""The few requests that the agent makes of the API server.

The package `kubernetes` brings configuration, credentials that rotate, and TLS. Its generated
classes stay unused: importing them costs 100 MB, and they decode each object of a watch twice.
"""

import binascii
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import aiohttp
import orjson
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from beckon_contract.resources import Key
from beckon_contract.tool_resources import API_VERSION

logger = logging.getLogger(__name__)

_PAGE = 250  # objects of a list that are asked for at once
_CONNECT = 10.0
_ANSWER = 60.0  # seconds for a whole answer that is no watch
_SILENCE = 90.0  # seconds; the API server sends a bookmark about once a minute
_GONE = 410
_ACCEPT = {"Accept": "application/json"}
_MERGE = {**_ACCEPT, "Content-Type": "application/merge-patch+json"}

Document = Mapping[str, Any]
Query = Sequence[tuple[str, str | int]]


class Unreachable(Exception):
    """The API server gives no answer."""


class Refused(Exception):
    """The API server answered with an error; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} ({status})")
        self.status = status

    @property
    def gone(self) -> bool:
        """Whether the version that was asked for is older than what the server still knows."""
        return self.status == _GONE

    @property
    def passing(self) -> bool:
        """Whether it says nothing about the request: too many of them, or the server is in trouble."""
        return self.status == 429 or self.status >= 500


class NotConfigured(Exception):
    """There is no usable kubeconfig, and this is no pod."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects of one kind, such as `tools`, in one namespace or, with `None`, in all of them."""

    plural: str
    namespace: str | None

    @property
    def path(self) -> str:
        """Where the API server has it."""
        within = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"/apis/{API_VERSION}{within}/{self.plural}"

    def __str__(self) -> str:
        """Return it as a message names it."""
        return f"{self.plural} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list; `rest` is where to go on, empty at the end."""

    items: Sequence[Document]
    version: str
    rest: str


@dataclass(frozen=True, slots=True)
class Change:
    """One event of a watch: ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    document: Document

    @property
    def version(self) -> str:
        """The version to go on from."""
        return version_of(self.document)


def version_of(document: Document) -> str:
    """Return the resource version of an object or a list."""
    return str((document.get("metadata") or {}).get("resourceVersion") or "")


class KubernetesApi:
    """A connection to one API server. Raises `Unreachable` and `Refused`, and nothing else."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    @classmethod
    async def connect(cls, kubeconfig: str) -> Self:
        """Use a kubeconfig, or with `""` the account of the pod that this runs in.

        Nothing is sent yet. Raises `NotConfigured`.
        """
        configuration = Configuration()
        try:
            if kubeconfig:
                await config.load_kube_config(kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]  # the package's
            else:
                config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]  # the package's
        except (config.ConfigException, OSError, ValueError) as error:
            message = f"{error}; run in a pod with a service account, or set KUBECONFIG to a kubeconfig"
            raise NotConfigured(message) from None
        client = ApiClient(configuration)
        client.user_agent = "beckon-agent"
        return cls(client)

    async def page(self, collection: Collection, rest: str = "") -> Page:
        """Return the first part of a list, or the one that another left as its rest."""
        query: list[tuple[str, str | int]] = [("limit", _PAGE)]
        if rest:
            query.append(("continue", rest))
        document = await self._ask("GET", collection.path, query)
        metadata = document.get("metadata") or {}
        return Page(document.get("items") or (), version_of(document), str(metadata.get("continue") or ""))

    @asynccontextmanager
    async def watch(
        self, collection: Collection, version: str, seconds: int
    ) -> AsyncIterator[AsyncIterator[Change]]:
        """Watch what changes after a version, for so many seconds at most.

        Ends early where nothing comes for a while, since the connection may be dead.
        """
        query: Query = (
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", seconds),
        )
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_SILENCE)
        response = await self._send("GET", collection.path, query, timeout)
        try:
            if response.status != 200:
                raise _refused(response.status, await _content(response))
            yield _changes(response)
        finally:
            response.close()

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """Return the entries of a Secret."""
        document = await self._ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")
        try:
            return {key: b64decode(text) for key, text in (document.get("data") or {}).items()}
        except binascii.Error:
            raise Unreachable("the API server sent a Secret that is no base64") from None

    async def write_status(self, collection: str, key: Key, status: Document) -> Document:
        """Write the status of an object over what is there, and return the object."""
        path = f"{Collection(collection, key.namespace).path}/{key.name}/status"
        return await self._ask("PATCH", path, body={"status": status})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()  # type: ignore[no-untyped-call]  # the package's

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _ask(
        self, method: str, path: str, query: Query = (), body: Document | None = None
    ) -> dict[str, Any]:
        timeout = aiohttp.ClientTimeout(total=_ANSWER, sock_connect=_CONNECT)
        response = await self._send(method, path, query, timeout, body)
        try:
            content = await _content(response)
        finally:
            response.release()
        if response.status != 200:
            raise _refused(response.status, content)
        return _document(content)

    async def _send(
        self,
        method: str,
        path: str,
        query: Query,
        timeout: aiohttp.ClientTimeout,
        body: Document | None = None,
    ) -> aiohttp.ClientResponse:
        try:
            prepared = await self._client.param_serialize(
                method,
                path,
                query_params=list(query),
                header_params=dict(_MERGE if method == "PATCH" else _ACCEPT),
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(*prepared, _request_timeout=timeout)
        except (aiohttp.ClientError, OSError, config.ConfigException) as error:
            raise Unreachable(_told(error)) from None
        response: aiohttp.ClientResponse = answer.response
        return response


async def _changes(response: aiohttp.ClientResponse) -> AsyncIterator[Change]:
    try:
        async for line in response.content:
            yield _change(line)
    except TimeoutError:
        logger.debug("no word in %g s; watching anew", _SILENCE)
    except (aiohttp.ClientError, ValueError) as error:  # a line that is too long is a ValueError
        raise Unreachable(_told(error)) from None


async def _content(response: aiohttp.ClientResponse) -> bytes:
    try:
        return await response.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable(_told(error)) from None


def _change(line: bytes) -> Change:
    event = _document(line)
    document = event.get("object") or {}
    if event.get("type") == "ERROR":
        raise Refused(int(document.get("code") or 500), str(document.get("message") or "the watch ended"))
    return Change(str(event.get("type")), document)


def _refused(status: int, content: bytes) -> Refused:
    """Return the error of an answer: the API server explains itself in a `Status`, a proxy may not."""
    try:
        message = str(_document(content).get("message") or "")
    except Unreachable:
        message = ""
    return Refused(status, message or "the API server answered with an error")


def _document(content: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise Unreachable("the API server sent what is no JSON object")
    return found


def _told(error: Exception) -> str:
    return str(error) or type(error).__name__
