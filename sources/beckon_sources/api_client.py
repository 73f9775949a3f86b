"""A small connection to the API server: lightkube's configuration, httpx2's requests.

Not lightkube's own client: its watch has no limit for silence, repeats an ended watch at once and for ever,
and takes U+0085 inside an object for the end of a line.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import orjson
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig, SingleConfig
from lightkube.core.exceptions import ConfigError

from beckon_sources.api_types import (
    ANSWER,
    CONNECT,
    SILENCE,
    Change,
    Collection,
    NotConfigured,
    Page,
    Query,
    Unreachable,
    first_line,
    page_query,
    read_change,
    read_document,
    read_page,
    refusal,
    watch_query,
)

logger = logging.getLogger(__name__)

_NO_ANSWER = (httpx2.HTTPError, ConfigError, OSError)  # the last two where credentials cannot be had


class Connection:
    """A connection to one API server.

    Raises `Unreachable` and `Refused`, and nothing else.
    """

    def __init__(self, config: SingleConfig) -> None:
        timeout = httpx2.Timeout(ANSWER, connect=CONNECT)
        self._http = AsyncClient(config, ConnectionParams(timeout=timeout))

    async def page(self, collection: Collection, rest: str = "") -> Page:
        """Return the first part of a list, or the part after `rest`."""
        return read_page(await self._ask("GET", collection.path, page_query(rest)))

    @asynccontextmanager
    async def watch(
        self, collection: Collection, version: str, seconds: int
    ) -> AsyncIterator[AsyncIterator[Change]]:
        """Watch the changes after a version, for `seconds` at most.

        Ends early after a long silence, since the connection may be dead.
        """
        timeout = httpx2.Timeout(CONNECT, read=SILENCE)
        query = dict(watch_query(version, seconds))
        request = self._http.build_request("GET", collection.path, params=query, timeout=timeout)
        try:
            response = await self._http.send(request, stream=True)
        except _NO_ANSWER as error:
            raise Unreachable(first_line(error)) from None
        try:
            if response.status_code != 200:
                raise refusal(response.status_code, await _content(response))
            yield _changes(response)
        finally:
            await response.aclose()

    async def create(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object at a path; return it from the server's answer."""
        return await self._ask("POST", path, content=orjson.dumps(document))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _ask(
        self, method: str, path: str, query: Query = (), content: bytes | None = None
    ) -> dict[str, Any]:
        headers = {"content-type": "application/json"} if content is not None else {}
        try:
            response = await self._http.request(
                method, path, params=dict(query), content=content, headers=headers
            )
        except _NO_ANSWER as error:
            raise Unreachable(first_line(error)) from None
        if not response.is_success:
            raise refusal(response.status_code, response.content)
        return read_document(response.content)


def connect() -> Connection:
    """Connect to the cluster of this Pod or of the current kube context.

    Nothing is sent yet. Raises `NotConfigured`, with the setting to change.
    """
    try:
        config = KubeConfig.from_env().get()
        if config is not None:
            return Connection(config)
        reason = "the kubeconfig names no current context"
    except Exception as error:  # whatever is wrong with a kubeconfig, it is not ours to judge
        reason = first_line(error)
    raise NotConfigured(f"there is no way to the API server: {reason}; run in a Pod or set KUBECONFIG")


async def _changes(response: httpx2.Response) -> AsyncIterator[Change]:
    try:
        async for line in _lines(response):
            yield read_change(line)
    except httpx2.ReadTimeout:
        logger.debug("no word in %g s; watching anew", SILENCE)
    except httpx2.HTTPError as error:
        raise Unreachable(first_line(error)) from None


async def _lines(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Yield the complete lines of a response, split at line feeds only.

    httpx2 ends lines at seven other characters, too.
    """
    begun = bytearray()
    async for chunk in response.aiter_bytes():
        first, *rest = chunk.split(b"\n")
        begun += first
        for part in rest:
            yield bytes(begun)
            begun = bytearray(part)


async def _content(response: httpx2.Response) -> bytes:
    try:
        return await response.aread()
    except httpx2.HTTPError as error:
        raise Unreachable(first_line(error)) from None
