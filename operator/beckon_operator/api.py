"""Requests to the API server outside of kopf: lists and all writes."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, NamedTuple

import httpx2
import orjson
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import SingleConfig

from beckon_operator.observed import version_of

_PAGE = 500
_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_TIMEOUT = httpx2.Timeout(10)
_MESSAGE = 300  # characters of an answer that are told
_BUSY = frozenset((429, 500, 502, 503, 504))


class Refused(Exception):
    """An error answer of the API server: HTTP status and message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status} {message}")
        self.status = status


class Page(NamedTuple):
    """One page of a collection, and the version of the whole.

    The items have no apiVersion and no kind.
    """

    items: list[dict[str, Any]]
    version: int


class Api:
    """The API server, with the credentials of a kubeconfig or a service account.

    Every method raises `Refused` for an error answer, and `httpx2.TransportError` for no answer.
    """

    def __init__(self, config: SingleConfig) -> None:
        self._http = AsyncClient(config, ConnectionParams(timeout=_TIMEOUT))

    async def close(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def get(self, path: str) -> dict[str, Any]:
        """Return the object at a path."""
        return await self._send("GET", path)

    async def create(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object in the collection at a path; return it as it was stored."""
        return await self._send("POST", path, document)

    async def replace(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the object at a path, unless its version has changed.

        The document names the expected version.
        """
        return await self._send("PUT", path, document)

    async def delete(self, path: str, uid: str, version: int) -> None:
        """Delete the object at a path, if uid and version still match."""
        conditions = {"uid": uid, "resourceVersion": str(version)}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        await self._send("DELETE", path, options)

    async def pages(self, path: str, *, metadata: bool = False) -> AsyncIterator[Page]:
        """Yield the objects of a collection page by page, as of one version.

        With `metadata` only the metadata of the objects is fetched. Raises `Refused` with status 410 if the
        collection has changed too much meanwhile.
        """
        parameters = {"limit": str(_PAGE)}
        headers = {"Accept": _METADATA} if metadata else {}
        while True:
            request = self._http.build_request("GET", path, params=parameters, headers=headers)
            document = _read(await self._http.send(request))
            yield Page(document.get("items") or [], version_of(document["metadata"]))
            more = document["metadata"].get("continue")
            if not more:
                return
            parameters["continue"] = more

    async def _send(
        self, method: str, path: str, document: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        # Not orjson: a schema may hold a number of more than 64 bits.
        content = None if document is None else json.dumps(document).encode()
        headers = {"Content-Type": "application/json"}
        return _read(await self._http.request(method, path, content=content, headers=headers))


def path_to(group: str, version: str, plural: str, namespace: str = "", name: str = "") -> str:
    """Return the path of an object or a collection.

    Without a name it is the collection; without a namespace, the collection of all namespaces.
    """
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    parts = [root, f"namespaces/{namespace}" if namespace else "", plural, name]
    return "/".join(part for part in parts if part)


def is_passing(error: Exception) -> bool:
    """Return True if the same request may succeed a moment later."""
    return isinstance(error, httpx2.TransportError) or (isinstance(error, Refused) and error.status in _BUSY)


def _read(response: httpx2.Response) -> dict[str, Any]:
    try:
        document = orjson.loads(response.content or b"{}")
    except orjson.JSONDecodeError:
        document = {}
    if response.is_success and isinstance(document, dict):
        return document
    message = document.get("message") if isinstance(document, dict) else None
    raise Refused(response.status_code, str(message or response.reason_phrase)[:_MESSAGE])
